"""actor.send in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks import brokers
from benchmarks._children import in_child
from benchmarks._figures import Reading, Result, Row, Unit
from benchmarks._session import Measurement, Session
from benchmarks.brokers import Address, BrokerContender
from benchmarks.brokers._actors import declare
from benchmarks.works._work import Work

TITLE = "actor.send, messages a second"
_COUNTS = {
    brokers.STUB: 10_000,
    brokers.OFF: 10_000,
    brokers.NORMAL: 2_000,
    brokers.FULL: 2_000,
    brokers.REDIS: 5_000,
    brokers.REDIS_FLUSHED: 1_000,
    brokers.RABBITMQ: 5_000,
}
_CONFIRMED_COUNT = 500
_BATCH = 1_000
_BATCHES = {brokers.OFF: 20, brokers.FULL: 20}


def seconds_each(ready: Callable[[], object], name: str, address: Address, count: int) -> float:
    """Seconds of one ``send``, after a tenth as a warm-up."""
    actors = declare(name, address, results=False)
    send = actors.stamp.send
    ready()
    for _ in range(max(1, count // 10)):
        send(0)
    start = time.perf_counter()
    for _ in range(count):
        send(0)
    elapsed = time.perf_counter() - start
    actors.broker.close()
    return elapsed / count


def batch_seconds_each(
    ready: Callable[[], object], name: str, address: Address, batches: int
) -> float:
    """Seconds for each message of ``enqueue_many``, after one batch as a warm-up."""
    actors = declare(name, address, results=False)
    contender = brokers.make(name)
    ready()

    def send_batch() -> None:
        messages: list[Any] = [actors.stamp.message(0) for _ in range(_BATCH)]
        contender.send_many(actors.broker, messages)

    send_batch()
    start = time.perf_counter()
    for _ in range(batches):
        send_batch()
    elapsed = time.perf_counter() - start
    actors.broker.close()
    return elapsed / (batches * _BATCH)


def _run(session: Session) -> Result:
    result = Result()
    with brokers.serving(session, _COUNTS) as served:
        figures = result.add(
            TITLE, session.alternate(_measurements(session, served), Unit.PER_SECOND)
        )
    for ours, peer in (
        (brokers.OFF, brokers.STUB),
        (brokers.OFF, brokers.REDIS),
        (brokers.FULL, brokers.REDIS),
        (brokers.FULL, brokers.REDIS_FLUSHED),
        (brokers.OFF, brokers.RABBITMQ),
        (brokers.FULL, brokers.RABBITMQ_CONFIRMED),
    ):
        if ours in figures and peer in figures:
            mode = ours.rpartition(" ")[2]
            result.rows.append(
                Row(f"send, {mode}", figures[ours], figures[peer], Reading.THROUGHPUT)
            )
    return result


def _measurements(session: Session, served: dict[str, BrokerContender]) -> dict[str, Measurement]:
    def one_by_one(name: str, server: BrokerContender, count: int) -> Measurement:
        def measure() -> float:
            with session.fresh() as directory:
                address = server.place(directory)
                return 1 / float(in_child(seconds_each, name, address, session.count(count, 10)))

        return measure

    def in_batches(name: str, batches: int) -> Measurement:
        def measure() -> float:
            with session.fresh() as directory:
                address = served[name].place(directory)
                number = session.count(batches, 1)
                return 1 / float(in_child(batch_seconds_each, name, address, number))

        return measure

    found = {name: one_by_one(name, served[name], _COUNTS[name]) for name in served}
    if brokers.RABBITMQ in served:
        # The same node, asked to confirm each message.
        found[brokers.RABBITMQ_CONFIRMED] = one_by_one(
            brokers.RABBITMQ_CONFIRMED, served[brokers.RABBITMQ], _CONFIRMED_COUNT
        )
    for name, batches in _BATCHES.items():
        if name in served:
            found[f"{name}, enqueue_many of 1,000"] = in_batches(name, batches)
    return found


WORK = Work(
    name="dramatiq-enqueue",
    title=TITLE,
    about=(
        "One thread of one process calls `actor.send()` with one number as the argument. StubBroker "
        "puts the encoded message into a `queue.Queue`. `RedisBroker` waits for the server's "
        "answer; the server persists nothing, or flushes its log at every command. "
        "`RabbitmqBroker` does not wait: after `send` the message may still be in a socket, and is "
        "lost if the server dies; `confirmed` is the same with `confirm_delivery=True`, which waits "
        'until the server has it on disk, as `sync="full"` does. `enqueue_many` makes one '
        "transaction of 1,000 messages."
    ),
    run=_run,
)
