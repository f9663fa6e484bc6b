"""Programs of test_wakeup: consumers that wait."""

from __future__ import annotations

import time

from equeue_core import Queue, QueueEmpty

from ._talk import say


def wait(path: str, timeout: str) -> None:
    """Wait once; says the payload, or nothing if none came."""
    try:
        record = Queue(path).get(float(timeout))
    except QueueEmpty:
        say("nothing")
        return
    record.ack()
    say(record.payload)


def echo(path: str) -> None:
    """Take jobs for ever; each payload is a time, and the delay since then is said, in seconds."""
    queue = Queue(path)
    queue.stats()
    say("ready")
    while True:
        record = queue.get()
        delay = time.monotonic() - record.payload
        record.ack()
        say(record.job_id, delay)


def punctual(path: str) -> None:
    """Take jobs for ever; says how many seconds after its due time each was claimed."""
    queue = Queue(path)
    queue.stats()
    say("ready")
    while True:
        record = queue.get()
        late = time.time() - record.payload
        record.ack()
        say(late)
