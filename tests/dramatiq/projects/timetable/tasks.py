import dramatiq
from dramatiq_crontab import interval


@interval(seconds=1)
@dramatiq.actor
def tick() -> None:
    """Sent by the scheduler; nobody needs to run it."""
