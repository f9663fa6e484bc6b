"""What django-rq's cron scheduler is to do."""

from rq.cron import register
from shop.tasks import ship

register(ship, "default", args=(1,), interval=1, name="shipping")
