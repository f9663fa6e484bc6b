"""Queue.empty of many jobs, a Lua script."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Result, Row, Target
from benchmarks._session import Measurement, Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.connections._workers import fill, queue_on
from benchmarks.works._work import Work

_TITLE = "time to empty a queue"
_DEPTH = 40_000
_CONTENDERS = (connections.OFF, connections.REDIS)


def seconds(ready: Callable[[], object], name: str, address: Address, count: int) -> float:
    """Seconds to empty a queue of so many jobs."""
    contender = connections.make(name)
    connection = contender.connect(address)
    queue = queue_on(connection)
    fill(connection, rq_jobs.nothing, 10)
    queue.empty()
    fill(connection, rq_jobs.nothing, count)
    contender.settle(address)
    ready()
    start = time.perf_counter()
    removed = queue.empty()
    elapsed = time.perf_counter() - start
    assert removed == count
    return elapsed


def _run(session: Session) -> Result:
    result = Result()
    count = session.count(_DEPTH, 100)
    with connections.serving(session, _CONTENDERS) as served:
        figures = result.add(
            f"{_TITLE} of {count:,} jobs",
            session.alternate(
                {name: _measurement(session, name, served[name], count) for name in served}
            ),
        )
    if connections.OFF in figures and connections.REDIS in figures:
        ours, peer = figures[connections.OFF], figures[connections.REDIS]
        label = f"Queue.empty of {count:,} jobs, off"
        result.rows.append(Row(label, ours, peer, target=Target(3)))
    return result


def _measurement(
    session: Session, name: str, contender: ConnectionContender, count: int
) -> Measurement:
    def measure() -> float:
        with session.fresh() as directory:
            return float(in_child(seconds, name, contender.place(directory), count))

    return measure


WORK = Work(
    name="rq-empty",
    title="Queue.empty",
    about=(
        "`Queue.empty` is one Lua script, which takes each job off the queue and removes it. It is "
        "run in the calling process, on its own data structures; a server's are in memory, and in C."
    ),
    run=_run,
)
