"""From enqueue in one process to the start of the job in an idle worker."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from benchmarks import connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Result, Row
from benchmarks._session import Measurement, Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.connections._workers import FORKING, SIMPLE, queue_on, working
from benchmarks.works._work import Work

_SCENES = {
    SIMPLE: (connections.OFF, connections.FULL, connections.REDIS),
    FORKING: (connections.OFF, connections.REDIS),
}
"""Who takes part, by the class of the worker."""
_COUNT = 30
_PAUSE = 0.03
_WARM_UP = 3


def title(worker_class: str) -> str:
    """The comparison with this class of workers."""
    return f"enqueue to start of the job, {worker_class}, median"


def send(ready: Callable[[], object], name: str, address: Address, count: int) -> None:
    """Enqueue stamped jobs, with pauses that are the same for every contender."""
    queue = queue_on(connections.make(name).connect(address))
    pauses = random.Random(count)
    ready()
    jobs = [queue.enqueue(rq_jobs.stamp, time.monotonic_ns()) for _ in range(_WARM_UP)]
    while not jobs[-1].is_finished:
        time.sleep(_PAUSE)
    for _ in range(count):
        time.sleep(pauses.uniform(0.5 * _PAUSE, 1.5 * _PAUSE))
        queue.enqueue(rq_jobs.stamp, time.monotonic_ns())


def _run(session: Session) -> Result:
    result = Result()
    with connections.serving(session, _SCENES[SIMPLE]) as served:
        for worker_class in _SCENES:
            figures = result.add(
                title(worker_class),
                session.alternate(_measurements(session, served, worker_class)),
            )
            for mode, ours in (("off", connections.OFF), ("full", connections.FULL)):
                if ours in figures and connections.REDIS in figures:
                    label = f"enqueue to start, {worker_class}, {mode}"
                    result.rows.append(Row(label, figures[ours], figures[connections.REDIS]))
    return result


def _measurements(
    session: Session, served: dict[str, ConnectionContender], worker_class: str
) -> dict[str, Measurement]:
    def measurement(name: str) -> Measurement:
        def measure() -> float:
            count = session.count(_COUNT, 3)
            with session.fresh() as directory:
                address = served[name].place(directory)
                with working(name, address, directory, worker_class=worker_class) as workers:
                    in_child(send, name, address, count)
                    workers.wait_done(_WARM_UP + count)
                    return statistics.median(workers.values()[_WARM_UP:]) * 1e-9

        return measure

    return {name: measurement(name) for name in _SCENES[worker_class] if name in served}


WORK = Work(
    name="rq-latency",
    title="enqueue to start of the job in an idle worker",
    about=(
        "An `rq worker` process is idle. Another process stamps a job, enqueues it and pauses for a "
        "random time around 30 ms; the time runs from before `enqueue` to the first line of the "
        "job's function, both read from the machine's monotonic clock. `rq.Worker` forks before "
        "that."
    ),
    run=_run,
)
