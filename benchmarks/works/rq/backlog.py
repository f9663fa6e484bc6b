"""What a hundred thousand waiting jobs cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Result, Row, Target
from benchmarks._session import Session
from benchmarks.connections import Address
from benchmarks.connections._workers import SIMPLE, fill, queue_on, seconds_each
from benchmarks.works._work import Work

_DEPTH = 100_000
_COUNT = 1_000
_CONTENDERS = (connections.OFF, connections.REDIS)
_TARGET = Target(1.1)
_ENQUEUE, _WORK = "enqueue", "worked off by SimpleWorker"
_Places = dict[tuple[str, int], Address]


def fill_queue(ready: Callable[[], object], name: str, address: Address, count: int) -> None:
    """Put the jobs into the queue, if there are to be any."""
    contender = connections.make(name)
    connection = contender.connect(address)
    ready()
    if count:
        fill(connection, rq_jobs.count, count)
        contender.settle(address)


def both_seconds(
    ready: Callable[[], object], name: str, address: Address, directory: str, count: int
) -> dict[str, float]:
    """Seconds for each job that is put into the queue, and for each that is taken off and worked off.

    As many are taken as were put.
    """
    connection = connections.make(name).connect(address)
    queue = queue_on(connection)
    warm_up = max(1, count // 10)
    ready()
    for _ in range(warm_up + 1):
        queue.enqueue(rq_jobs.count)
    start = time.perf_counter()
    for _ in range(count):
        queue.enqueue(rq_jobs.count)
    enqueued = (time.perf_counter() - start) / count
    worked = seconds_each(connection, SIMPLE, Path(directory), warm_up, count)
    return {_ENQUEUE: enqueued, _WORK: worked}


def _run(session: Session) -> Result:
    result = Result()
    depth = session.count(_DEPTH, 100)
    with _filled(session, depth) as places:
        labels = {
            (name, jobs): f"{name}, {f'{jobs:,} waiting' if jobs else 'empty'}"
            for name, jobs in places
        }
        found = session.alternate_several(
            {labels[key]: _measurement(session, key[0], places[key]) for key in places}
        )
    for work, series in found.items():
        figures = result.add(f"time for each job, {work}, by backlog", series)
        if (connections.OFF, depth) in labels:
            deep, empty = labels[connections.OFF, depth], labels[connections.OFF, 0]
            label = f"{work}, off, {depth:,} waiting"
            result.rows.append(Row(label, figures[deep], figures[empty], target=_TARGET))
    return result


@contextmanager
def _filled(session: Session, depth: int) -> Iterator[_Places]:
    with connections.serving(session, _CONTENDERS) as served, ExitStack() as stack:
        places: _Places = {}
        for database, (jobs, name) in enumerate(product((0, depth), served)):
            directory = stack.enter_context(session.fresh())
            # A server has both of its queues in databases of its own.
            places[name, jobs] = served[name].place(directory) | {"db": database}
        for (name, jobs), address in places.items():
            in_child(fill_queue, name, address, jobs)
        yield places


def _measurement(session: Session, name: str, address: Address) -> Callable[[], dict[str, float]]:
    def measure() -> dict[str, float]:
        with session.fresh() as directory:
            count = session.count(_COUNT, 5)
            both: dict[str, float] = in_child(both_seconds, name, address, str(directory), count)
            return both

    return measure


WORK = Work(
    name="rq-backlog",
    title="A hundred thousand waiting jobs",
    about=(
        "The deep queue is filled once and flushed. Then, in each round, jobs are put behind the "
        "waiting ones, and a SimpleWorker takes as many off, beside the same on an empty queue."
    ),
    run=_run,
)
