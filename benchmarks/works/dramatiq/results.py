"""From send to the result in the sender's hands."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks import brokers
from benchmarks._children import in_child
from benchmarks._figures import Result, Row
from benchmarks._session import Measurement, Session
from benchmarks.brokers import Address, BrokerContender
from benchmarks.brokers._actors import Actors, declare
from benchmarks.brokers._command import working
from benchmarks.works._work import Work

_CONTENDERS = (brokers.OFF, brokers.FULL, brokers.REDIS, brokers.RABBITMQ_WITH_RESULTS)
_TIMEOUT = 60_000
_GROUP = 10


def _single(actors: Actors) -> None:
    message = actors.echo.send(1)
    message.get_result(backend=actors.broker.get_results_backend(), block=True, timeout=_TIMEOUT)


def _pipeline(actors: Actors) -> None:
    from dramatiq import pipeline

    echo = actors.echo.message
    pipeline([echo(1), echo(), echo()], broker=actors.broker).run().get_result(
        block=True, timeout=_TIMEOUT
    )


def _group(actors: Actors) -> None:
    from dramatiq import group

    members = group([actors.echo.message(number) for number in range(_GROUP)], broker=actors.broker)
    list(members.run().get_results(block=True, timeout=_TIMEOUT))


_SHAPES: dict[str, tuple[Callable[[Actors], None], int]] = {
    "one message": (_single, 100),
    "a pipeline of 3": (_pipeline, 50),
    f"a group of {_GROUP}": (_group, 30),
}


def median_seconds(
    ready: Callable[[], object], name: str, address: Address, shape: str, count: int
) -> float:
    """Median seconds from sending to the last result."""
    actors = declare(name, address, results=True)
    round_trip, _ = _SHAPES[shape]
    ready()
    for _ in range(3):
        round_trip(actors)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        round_trip(actors)
        times.append(time.perf_counter() - start)
    actors.broker.close()
    return statistics.median(times)


def _run(session: Session) -> Result:
    result = Result()
    with brokers.serving(session, _CONTENDERS) as served:
        for shape in _SHAPES:
            figures = result.add(
                f"send to result, {shape}",
                session.alternate(_measurements(session, served, shape)),
            )
            for mode in (brokers.OFF, brokers.FULL):
                if mode in figures and brokers.REDIS in figures:
                    label = f"send to result, {mode.rpartition(' ')[2]}, {shape}"
                    result.rows.append(Row(label, figures[mode], figures[brokers.REDIS]))
    return result


def _measurements(
    session: Session, served: dict[str, BrokerContender], shape: str
) -> dict[str, Measurement]:
    def measurement(name: str) -> Measurement:
        def measure() -> float:
            with session.fresh() as directory:
                address = served[name].place(directory)
                count = session.count(_SHAPES[shape][1], 3)
                with working(name, address, directory, results=True):
                    return float(in_child(median_seconds, name, address, shape, count))

        return measure

    return {name: measurement(name) for name in served}


WORK = Work(
    name="dramatiq-results",
    title="send to result",
    about=(
        "A process sends and blocks in `get_result(block=True)`; a worker process of the "
        "`dramatiq` command returns what it was given and stores it. A pipeline passes the number "
        "on twice; a group waits for all its members. LMDBResultBackend is in the broker's store, "
        "and a result is committed together with its message's ack. RabbitmqBroker has no result "
        "backend; it is shown with RedisBackend on a server of its own."
    ),
    run=_run,
)
