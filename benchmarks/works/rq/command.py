"""Jobs worked off by four processes of ``rq worker``."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Reading, Result, Row, Target, Unit
from benchmarks._session import Measurement, Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.connections._workers import FORKING, SIMPLE, fill, working
from benchmarks.works._work import Work

_PROCESSES = 4
_CONTENDERS = (connections.OFF, connections.REDIS)
_COUNTS = {FORKING: 160, SIMPLE: 1_000}
_TARGET = Target(1.2, at_least=True)


def title(worker_class: str) -> str:
    """The comparison with this class of workers."""
    return f"jobs a second, {_PROCESSES} rq workers, {worker_class}"


def fill_queue(ready: Callable[[], object], name: str, address: Address, count: int) -> None:
    """Put the jobs into the queue."""
    contender = connections.make(name)
    ready()
    fill(contender.connect(address), rq_jobs.count, count)
    contender.settle(address)


def _run(session: Session) -> Result:
    result = Result()
    with connections.serving(session, _CONTENDERS) as served:
        for worker_class in _COUNTS:
            figures = result.add(
                title(worker_class),
                session.alternate(_measurements(session, served, worker_class), Unit.PER_SECOND),
            )
            if connections.OFF in figures and connections.REDIS in figures:
                ours, peer = figures[connections.OFF], figures[connections.REDIS]
                label = f"{_PROCESSES} rq workers, {worker_class}, off"
                result.rows.append(Row(label, ours, peer, Reading.THROUGHPUT, _TARGET))
    return result


def _measurements(
    session: Session, served: dict[str, ConnectionContender], worker_class: str
) -> dict[str, Measurement]:
    def measurement(name: str) -> Measurement:
        def measure() -> float:
            # All workers have one job when the gate opens.
            count = session.count(_COUNTS[worker_class], 2 * _PROCESSES)
            with session.fresh() as directory:
                address = served[name].place(directory)
                in_child(fill_queue, name, address, count)
                with working(
                    name, address, directory, processes=_PROCESSES, worker_class=worker_class
                ) as workers:
                    workers.wait_at_gate(_PROCESSES)
                    workers.open_gate()
                    workers.wait_done(count)
                    return count / workers.seconds()

        return measure

    return {name: measurement(name) for name in served}


WORK = Work(
    name="rq-command",
    title="Jobs worked off by four rq workers",
    about=(
        "All jobs are in the queue when four `rq worker` processes start. Each takes one and waits "
        "at a gate in the job's function; when all wait, the gate opens, and the time runs until "
        "the last job has run. The start of the processes is not counted."
    ),
    run=_run,
)
