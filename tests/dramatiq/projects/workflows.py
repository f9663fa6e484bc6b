"""An application with dramatiq-workflow, whose barriers are on a rate limiter backend."""

import dramatiq
from common import STORE, write

from equeue_dramatiq import LMDBBroker, LMDBRateLimiterBackend

broker = LMDBBroker(STORE)
dramatiq.set_broker(broker)

from dramatiq_workflow import Chain, Group, Workflow, WorkflowMiddleware  # noqa: E402

broker.add_middleware(WorkflowMiddleware(LMDBRateLimiterBackend(STORE)))


@dramatiq.actor
def task(name: str) -> None:
    write(name)


def start() -> None:
    first, left, right, last = (task.message(name) for name in ("first", "left", "right", "last"))
    Workflow(Chain(first, Group(left, right), last)).run()
