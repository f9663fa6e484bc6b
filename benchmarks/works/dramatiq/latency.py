"""From send in one process to the start of the actor in an idle worker."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from benchmarks import brokers
from benchmarks._children import in_child
from benchmarks._figures import Figure, Result, Row, Target, Unit, percentile
from benchmarks._session import Measurement, Session
from benchmarks.brokers import Address, BrokerContender
from benchmarks.brokers._actors import declare
from benchmarks.brokers._command import working
from benchmarks.works._work import Work

_CONTENDERS = (brokers.OFF, brokers.NORMAL, brokers.FULL, brokers.REDIS, brokers.RABBITMQ)
_TARGET = Target(0.5)


class _Scene(NamedTuple):
    """Between two messages the worker is idle for ``pause`` seconds, more or less a half."""

    label: str
    pause: float
    messages: int

    @property
    def title(self) -> str:
        return f"send to start of the actor, {self.label}, median"


SCENES = (
    _Scene("a message each 20 ms", 0.02, 100),
    _Scene("a message each 500 ms", 0.5, 10),
)


def send(
    ready: Callable[[], object], name: str, address: Address, pause: float, count: int
) -> None:
    """Send stamped messages, with pauses that are the same for every contender."""
    actors = declare(name, address, results=False)
    pauses = random.Random(count)
    ready()
    for _ in range(count):
        time.sleep(pauses.uniform(0.5 * pause, 1.5 * pause))
        actors.stamp.send(time.monotonic_ns())
    actors.broker.close()


Rounds = dict[str, list[list[float]]]
"""The latencies of each round by broker."""


def _run(session: Session) -> Result:
    result = Result()
    rounds: dict[_Scene, Rounds] = {scene: {} for scene in SCENES}
    with brokers.serving(session, _CONTENDERS) as served:
        session.alternate(
            {name: _measurement(session, name, served[name], rounds) for name in served}
        )
    for scene, latencies in rounds.items():
        _report(result, scene, latencies)
    return result


def _measurement(
    session: Session, name: str, contender: BrokerContender, rounds: dict[_Scene, Rounds]
) -> Measurement:
    def measure() -> float:
        with session.fresh() as directory:
            address = contender.place(directory)
            with working(name, address, directory) as workers:
                in_child(send, name, address, 0.0, 1)
                workers.wait_done(1)
                seen = 1
                for scene in SCENES:
                    count = session.count(scene.messages, 3)
                    in_child(send, name, address, scene.pause, count)
                    workers.wait_done(seen + count)
                    # Not the first, for which the sender had to connect.
                    latencies = [value * 1e-9 for value in workers.values()[seen + 1 :]]
                    rounds[scene].setdefault(name, []).append(latencies)
                    seen += count
        return 0.0  # the figures are made of the latencies

    return measure


def _report(result: Result, scene: _Scene, latencies: Rounds) -> None:
    medians = result.add(
        scene.title,
        [
            Figure(name, Unit.SECONDS, tuple(map(statistics.median, rounds)))
            for name, rounds in latencies.items()
        ],
    )
    tails = result.add(
        scene.title.replace("median", "99th percentile"),
        [
            Figure(name, Unit.SECONDS, (percentile(list(chain(*rounds)), 0.99),))
            for name, rounds in latencies.items()
        ],
    )
    for mode in (brokers.OFF, brokers.FULL):
        for word, figures, target in (("median", medians, _TARGET), ("p99", tails, None)):
            if mode in figures and brokers.REDIS in figures:
                label = f"send to start, {mode.rpartition(' ')[2]}, {scene.label}, {word}"
                result.rows.append(Row(label, figures[mode], figures[brokers.REDIS], target=target))


WORK = Work(
    name="dramatiq-latency",
    title="send to start of the actor in an idle worker",
    about=(
        "A worker process of the `dramatiq` command with 8 threads is idle. Another process stamps "
        "a message, sends it and pauses for a random time around the given one; the time runs from "
        "before `send` to the first line of the actor, both read from the machine's monotonic "
        "clock. The 99th percentile is that of all rounds together. RedisBroker polls, with pauses "
        "that double from 5 ms up to a second while nothing comes."
    ),
    run=_run,
)
