"""A backlog worked off by one worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Reading, Result, Row
from benchmarks._session import Measurement, Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.connections._workers import FORKING, OURS, SIMPLE, fill, seconds_each
from benchmarks.works._work import Work
from benchmarks.works.rq._rows import rows

SIMPLE_TITLE = "time for each job, SimpleWorker"
FORKING_TITLE = "time for each job, Worker, which forks"
_SIMPLE_COUNTS = {
    connections.OFF: 1_500,
    connections.NORMAL: 600,
    connections.FULL: 600,
    connections.REDIS: 800,
    connections.REDIS_FLUSHED: 500,
}
_FORKING_COUNT = 120
_FORKING_CONTENDERS = [name for name in _SIMPLE_COUNTS if name != connections.NORMAL]


def work_off(
    ready: Callable[[], object],
    name: str,
    address: Address,
    worker_class: str,
    directory: str,
    count: int,
) -> float:
    """Seconds for each job of a backlog; a fifth more warm up."""
    contender = connections.make(name)
    connection = contender.connect(address)
    warm_up = max(1, count // 5)
    fill(connection, rq_jobs.count, warm_up + count + 1)
    contender.settle(address)
    ready()
    return seconds_each(connection, worker_class, Path(directory), warm_up, count)


def _run(session: Session) -> Result:
    result = Result()
    with connections.serving(session, _SIMPLE_COUNTS) as served:

        def measurement(name: str, worker_class: str, count: int) -> Measurement:
            return _measurement(session, name, served[name], worker_class, count)

        simple = result.add(
            SIMPLE_TITLE,
            session.alternate(
                {name: measurement(name, SIMPLE, _SIMPLE_COUNTS[name]) for name in served}
            ),
        )
        forking = {
            name: measurement(name, FORKING, _FORKING_COUNT)
            for name in _FORKING_CONTENDERS
            if name in served
        }
        ours = f"{connections.OFF}, {OURS}"
        if connections.OFF in served:
            forking[ours] = measurement(connections.OFF, OURS, _FORKING_COUNT)
        forked = result.add(FORKING_TITLE, session.alternate(forking))
    result.rows += rows("worked off by SimpleWorker", simple, off=0.45, full=0.9)
    result.rows += rows("worked off by Worker", forked, off=0.9, full=0.9)
    if ours in forked:
        label = f"worked off by {OURS}, off"
        if connections.REDIS in forked:
            result.rows.append(Row(label, forked[ours], forked[connections.REDIS]))
        result.rows.append(Row(label, forked[ours], forked[connections.OFF], Reading.TIME))
    return result


def _measurement(
    session: Session, name: str, contender: ConnectionContender, worker_class: str, count: int
) -> Measurement:
    def measure() -> float:
        with session.fresh() as directory:
            address = contender.place(directory)
            number = session.count(count, 4)
            return float(in_child(work_off, name, address, worker_class, str(directory), number))

    return measure


WORK = Work(
    name="rq-burst",
    title="Jobs worked off by one worker",
    about=(
        "All jobs are in the queue before a worker starts; the function notes the time and does "
        "nothing. The time for each runs from the start of one job to the start of a later one. "
        "`SimpleWorker` runs jobs in its own process; `Worker`, RQ's default, forks a process for "
        "each, which is most of its time. The worker classes are RQ's own on every connection; "
        "`equeue_rq.Worker` is shown beside them."
    ),
    run=_run,
)
