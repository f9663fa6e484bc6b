"""An application with Dramatiq's Prometheus middleware."""

import dramatiq
from common import STORE, write
from dramatiq.middleware.prometheus import Prometheus

from equeue_dramatiq import LMDBBroker

broker = LMDBBroker(STORE)
broker.add_middleware(Prometheus())
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=1, min_backoff=1, max_backoff=1)
def work(good: bool) -> None:
    write("work", good)
    if not good:
        raise ValueError("bad")
