"""An application with dramatiq-abort."""

import time

import dramatiq
from common import LINES, STORE, write
from dramatiq_abort import Abort, Abortable, abort

from equeue_dramatiq import LMDBBroker
from equeue_dramatiq.abort import LMDBEventBackend

broker = LMDBBroker(STORE)
broker.add_middleware(Abortable(backend=LMDBEventBackend(STORE)))
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=0)
def work(name: str) -> None:
    write("started", name)
    try:
        while True:
            time.sleep(0.01)
    except Abort:
        write("aborted", name)
        raise


def demand() -> None:
    """Abort a message that runs, and one that waits behind it."""
    first, second = work.send("first"), work.send("second")
    while not LINES.exists():
        time.sleep(0.01)
    abort(second.message_id)
    abort(first.message_id)
