"""Queue.enqueue in one process."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Result
from benchmarks._session import Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.connections._workers import queue_on
from benchmarks.works._work import Work
from benchmarks.works.rq._rows import rows

TITLE = "time for each job, Queue.enqueue"
_BATCH_TITLE = "time for each job, enqueue_many of 1,000"
_COUNTS = {
    connections.OFF: 3_000,
    connections.NORMAL: 1_000,
    connections.FULL: 1_000,
    connections.REDIS: 2_000,
    connections.REDIS_FLUSHED: 1_000,
}
_BATCH = 1_000
_BATCHES = 5


def seconds_each(
    ready: Callable[[], object], name: str, address: Address, count: int, batches: int
) -> dict[str, float]:
    """Seconds for each job, alone and in batches; a tenth, and one batch, warm up."""
    queue = queue_on(connections.make(name).connect(address))
    ready()

    def enqueue(number: int) -> None:
        for _ in range(number):
            queue.enqueue(rq_jobs.nothing)

    def enqueue_batches(number: int) -> None:
        for _ in range(number):
            queue.enqueue_many([queue.prepare_data(rq_jobs.nothing) for _ in range(_BATCH)])

    return {
        TITLE: _seconds(enqueue, max(1, count // 10), count) / count,
        _BATCH_TITLE: _seconds(enqueue_batches, 1, batches) / (batches * _BATCH),
    }


def _seconds(run: Callable[[int], None], warm_up: int, count: int) -> float:
    run(warm_up)
    start = time.perf_counter()
    run(count)
    return time.perf_counter() - start


def _run(session: Session) -> Result:
    result = Result()
    with connections.serving(session, _COUNTS) as served:
        found = session.alternate_several(
            {name: _measurement(session, name, served[name]) for name in served}
        )
    figures = {title: result.add(title, each) for title, each in found.items()}
    result.rows += rows("enqueue", figures.get(TITLE, {}), off=0.45, full=0.9)
    result.rows += rows("enqueue_many of 1,000", figures.get(_BATCH_TITLE, {}))
    return result


def _measurement(
    session: Session, name: str, contender: ConnectionContender
) -> Callable[[], dict[str, float]]:
    def measure() -> dict[str, float]:
        with session.fresh() as directory:
            address = contender.place(directory)
            counts = session.count(_COUNTS[name], 10), session.count(_BATCHES, 1)
            found: dict[str, float] = in_child(seconds_each, name, address, *counts)
            return found

    return measure


WORK = Work(
    name="rq-enqueue",
    title="Queue.enqueue",
    about=(
        "One thread of one process calls `queue.enqueue(function)`: RQ sends two transactions, of "
        "four commands in all. `enqueue_many` puts 1,000 jobs into one transaction. The server "
        'persists nothing, or flushes its log at every command, as `sync="full"` does.'
    ),
    run=_run,
)
