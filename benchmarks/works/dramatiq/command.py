"""Messages processed by the ``dramatiq`` command."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import brokers
from benchmarks._children import in_child
from benchmarks._figures import Result
from benchmarks._session import Measurement, Session
from benchmarks.brokers import Address, BrokerContender
from benchmarks.brokers._actors import declare
from benchmarks.brokers._command import THREADS, working
from benchmarks.works._work import Work
from benchmarks.works.dramatiq.process import rows

_PROCESSES = (1, 2)
_COUNTS = {
    brokers.OFF: 20_000,
    brokers.NORMAL: 10_000,
    brokers.FULL: 10_000,
    brokers.REDIS: 4_000,
    brokers.RABBITMQ: 8_000,
}
# Each process takes two messages for each of its threads, and all threads wait at the gate.
_LEAST = 2 * THREADS * max(_PROCESSES) + THREADS


def fill(ready: Callable[[], object], name: str, address: Address, count: int) -> None:
    """Put the messages into the queue."""
    actors = declare(name, address, results=False)
    ready()
    brokers.make(name).send(actors.broker, actors.count, count)
    actors.broker.close()


def title(processes: int) -> str:
    """The comparison with so many worker processes."""
    return f"time for each message, dramatiq command, {_crowd(processes)} of 8 threads"


def _crowd(processes: int) -> str:
    return f"{processes} process{'es' if processes > 1 else ''}"


def _run(session: Session) -> Result:
    result = Result()
    with brokers.serving(session, _COUNTS) as served:
        for processes in _PROCESSES:
            times = result.add(
                title(processes), session.alternate(_measurements(session, served, processes))
            )
            result.add(
                title(processes).replace("time for each message", "messages a second"),
                [figure.inverted() for figure in times.values()],
            )
            result.rows += rows(f"processed by the command, {_crowd(processes)}", times)
    return result


def _measurements(
    session: Session, served: dict[str, BrokerContender], processes: int
) -> dict[str, Measurement]:
    def measurement(name: str) -> Measurement:
        def measure() -> float:
            count = session.count(_COUNTS[name], _LEAST)
            with session.fresh() as directory:
                address = served[name].place(directory)
                in_child(fill, name, address, count)
                with working(name, address, directory, processes=processes) as workers:
                    workers.wait_at_gate(processes * THREADS)
                    workers.open_gate()
                    workers.wait_done(count)
                    return workers.seconds() / count

        return measure

    return {name: measurement(name) for name in served}


WORK = Work(
    name="dramatiq-command",
    title="Messages processed by the dramatiq command",
    about=(
        "All messages are in the queue when `dramatiq` starts its worker processes of 8 threads. "
        "Every thread takes a message and waits at a gate in the actor; when all wait, the gate "
        "opens, and the time runs until the end of the last message. Each process notes its "
        "moments in a mapped file. The start of the processes is not counted."
    ),
    run=_run,
)
