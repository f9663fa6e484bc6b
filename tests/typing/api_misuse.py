"""Illegal uses of the public API. `mypy --strict` must refuse exactly the lines that say so."""

from __future__ import annotations

from equeue_core import AsyncQueue, Queue, Record, Store


def misuse(store: Store, queue: Queue, record: Record) -> None:
    Store(42)  # error: arg-type
    Store("./data", sync="always")  # error: arg-type
    Queue("./data", "mail", 30)  # error: call-arg
    Queue("./data", codec=object())  # error: arg-type
    Queue("./data", backoff="slow")  # error: arg-type
    queue.put("text", 5)  # error: call-arg
    queue.put("text", delay="soon")  # error: arg-type
    queue.put("text", run_at="tomorrow")  # error: arg-type
    queue.put_many(["a"], unique="once")  # error: call-arg
    queue.get().nack(dely=1)  # error: call-arg
    with store.transaction() as tx:
        tx.ack(7)  # error: arg-type


async def asynchronous_misuse(queue: AsyncQueue) -> None:
    queue.put("text")  # error: unused-coroutine
