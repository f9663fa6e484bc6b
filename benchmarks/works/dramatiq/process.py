"""Messages processed by a Worker in the benchmark's own process."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import brokers
from benchmarks._children import in_passing_child
from benchmarks._figures import Figure, Reading, Result, Row, Target
from benchmarks._session import Measurement, Session
from benchmarks.brokers import Address
from benchmarks.works._work import Work

TITLE = "time for each message, Worker with 8 threads in one process"
_THREADS = 8
_PATIENCE = 300.0
_COUNTS = {
    brokers.STUB: 20_000,
    brokers.OFF: 20_000,
    brokers.NORMAL: 10_000,
    brokers.FULL: 10_000,
    brokers.REDIS: 3_000,
    brokers.REDIS_FLUSHED: 3_000,
    brokers.RABBITMQ: 8_000,
}


class _Meter:
    """Counts calls; knows when the warm-up was over, and sees the last one."""

    def __init__(self, warm_up: int, total: int) -> None:
        self._numbers = itertools.count(1)
        self._warm_up = warm_up
        self._total = total
        self.started_at = 0.0
        self.last_began = threading.Event()

    def count(self) -> None:
        number = next(self._numbers)
        if number == self._warm_up:
            self.started_at = time.perf_counter()
        elif number == self._total:
            self.last_began.set()


def seconds_each(ready: Callable[[], object], name: str, address: Address, count: int) -> float:
    """Seconds for each of ``count`` messages, until the last is acked; a fifth more warm up.

    The worker is left running.
    """
    import dramatiq

    contender = brokers.make(name)
    broker = contender.broker(address)
    warm_up = max(1, count // 5)
    meter = _Meter(warm_up, warm_up + count)
    options: dict[str, Any] = {"broker": broker, "actor_name": "nothing"}
    actor = dramatiq.actor(meter.count, **options)
    contender.send(broker, actor, warm_up + count)
    broker.emit_after("process_boot")
    worker = dramatiq.Worker(broker, worker_threads=_THREADS)
    ready()
    worker.start()
    if not meter.last_began.wait(_PATIENCE):
        raise TimeoutError("the worker did not process all messages")
    worker.join()
    return (time.perf_counter() - meter.started_at) / count


def _run(session: Session) -> Result:
    result = Result()
    with brokers.serving(session, _COUNTS) as served:

        def measurement(name: str) -> Measurement:
            def measure() -> float:
                with session.fresh() as directory:
                    address = served[name].place(directory)
                    count = session.count(_COUNTS[name], 50)
                    return float(in_passing_child(seconds_each, name, address, count))

            return measure

        times = result.add(TITLE, session.alternate({name: measurement(name) for name in served}))
    result.add(
        TITLE.replace("time for each message", "messages a second"),
        [figure.inverted() for figure in times.values()],
    )
    result.rows = list(rows("processed in process", times))
    return result


def rows(work: str, times: Mapping[str, Figure]) -> list[Row]:
    """The comparisons of times for each message, as far as both sides were measured."""
    found = []
    for ours, peer, reading, target in (
        (brokers.OFF, brokers.STUB, Reading.TIME, Target(1.6)),
        (brokers.OFF, brokers.REDIS, Reading.FASTER, Target(4.0, at_least=True)),
        (brokers.FULL, brokers.REDIS, Reading.FASTER, Target(2.0, at_least=True)),
        (brokers.FULL, brokers.REDIS_FLUSHED, Reading.FASTER, None),
        (brokers.OFF, brokers.RABBITMQ, Reading.FASTER, None),
        (brokers.FULL, brokers.RABBITMQ, Reading.FASTER, None),
    ):
        if ours in times and peer in times:
            mode = ours.rpartition(" ")[2]
            found.append(Row(f"{work}, {mode}", times[ours], times[peer], reading, target))
    return found


WORK = Work(
    name="dramatiq-process",
    title="Messages processed in process",
    about=(
        "All messages are in the queue before a `dramatiq.Worker` with 8 threads and Dramatiq's "
        "default middleware starts; the actor does nothing. The time runs, after a warm-up, until "
        "the last message is acked. StubBroker stores nothing and is the limit: its time is "
        "Dramatiq's own, most of it Python code of eight threads that share one interpreter lock."
    ),
    run=_run,
)
