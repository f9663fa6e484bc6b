"""From put in one process to claimed in another that was waiting."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import contenders
from benchmarks._children import Child
from benchmarks._figures import Figure, Result, Row, Target, Unit, percentile
from benchmarks._session import Session
from benchmarks.works._work import Work

_CONTENDERS = (contenders.OFF, contenders.LMDB_QUEUE, contenders.VALKEY, contenders.FULL)
_STOP = "stop"


class _Scene(NamedTuple):
    """How many wait, seconds between two jobs, jobs in a round, and whether the targets apply."""

    waiters: int
    pause: float
    jobs: int
    judged: bool

    def __str__(self) -> str:
        crowd = f"{self.waiters} waiter{'s' if self.waiters > 1 else ''}"
        return crowd if self.judged else f"{crowd}, a job each {self.pause * 1e3:g} ms"


_SCENES = (
    _Scene(waiters=1, pause=0.002, jobs=200, judged=True),
    _Scene(waiters=8, pause=0.002, jobs=200, judged=True),
    _Scene(waiters=1, pause=0.05, jobs=20, judged=False),
)


def consume(ready: Callable[[], object], name: str, store: Path) -> list[float]:
    """A waiting consumer: the seconds from the stamp in each payload to its claim."""
    contender = contenders.make(name)
    contender.join(store)
    latencies: list[float] = []
    ready()
    while True:
        item = contender.wait(60.0)
        claimed_at = time.perf_counter()
        if item is None:
            raise TimeoutError("the producer is gone")
        text = contender.text(item)
        contender.ack(item)
        if text == _STOP:
            contender.close()
            return latencies
        # The monotonic clock is one for all processes of the machine.
        latencies.append(claimed_at - float(text))


def _latencies(session: Session, name: str, scene: _Scene) -> list[float]:
    with session.fresh() as store:
        producer = contenders.make(name)
        producer.open(store)
        children = [Child(consume, name, store) for _ in range(scene.waiters)]
        for child in children:
            child.wait_ready()
        for _ in range(session.count(scene.jobs, 3)):
            # Between two jobs every consumer is back in its wait.
            time.sleep(scene.pause)
            producer.put(repr(time.perf_counter()))
        for _ in children:
            producer.put(_STOP)
        latencies = [value for child in children for value in child.result()]
        producer.close()
        return latencies


def _run(session: Session) -> Result:
    result = Result()
    for scene in _SCENES:
        _play(session, result, scene)
    return result


def _play(session: Session, result: Result, scene: _Scene) -> None:
    every: dict[str, list[float]] = {}

    def measure(name: str) -> Callable[[], float]:
        def measurement() -> float:
            latencies = _latencies(session, name, scene)
            every.setdefault(name, []).extend(latencies)
            return statistics.median(latencies)

        return measurement

    names = contenders.installed(_CONTENDERS)
    title = f"put to claimed in another process, {scene}, median"
    medians = result.add(title, session.alternate({name: measure(name) for name in names}))
    tails = result.add(
        title.replace("median", "99th percentile"),
        [Figure(name, Unit.SECONDS, (percentile(every[name], 0.99),)) for name in names],
    )
    ours, peer = contenders.OFF, contenders.LMDB_QUEUE
    if ours in medians and scene.judged:
        result.rows += [
            Row(
                f"put to claimed, off, {scene}, median",
                medians[ours],
                medians.get(peer),
                target=Target(1e-4, unit=Unit.SECONDS),
            ),
            Row(
                f"put to claimed, off, {scene}, p99",
                tails[ours],
                tails.get(peer),
                target=Target(2e-3, unit=Unit.SECONDS),
            ),
        ]


WORK = Work(
    name="wake-up",
    title="put to claimed in another process",
    about=(
        "Consumers in processes of their own block in `get()`. The producer stamps a payload, "
        "calls `put` and pauses 2 ms; the time runs from before `put` to after `get` returned "
        "in the other process. The 99th percentile is that of all rounds together. With rarer "
        "jobs, shown last, every contender is slower: processors and their caches have gone to "
        "sleep between two jobs. With "
        '`sync="full"` the time holds two flushes before the commit is durable and one for the '
        "claim. lmdb-queue polls every 10 ms; Valkey's clients block in BLMOVE."
    ),
    run=_run,
)
