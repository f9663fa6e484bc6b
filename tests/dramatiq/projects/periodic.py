"""An application with periodiq."""

import dramatiq
from common import STORE, write
from dramatiq.middleware import CurrentMessage
from periodiq import PeriodiqMiddleware, cron

from equeue_dramatiq import LMDBBroker

broker = LMDBBroker(STORE)
broker.add_middleware(PeriodiqMiddleware(skip_delay=60))
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)


@dramatiq.actor(periodic=cron("* * * * *"))
def every_minute() -> None:
    message = CurrentMessage.get_current_message()
    assert message is not None
    write("every_minute", message.options["scheduled_at"])
