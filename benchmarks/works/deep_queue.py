"""What a million pending jobs cost: opening, the first get, and the round trip."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import contenders
from benchmarks._children import in_child
from benchmarks._figures import Figure, Result, Row, Target
from benchmarks._loops import PAYLOAD, round_trips, seconds_each
from benchmarks._session import Measurement, Session, settle
from benchmarks.works._work import Work

_DEPTH = 1_000_000
_FILL_BATCH = 5_000
_CONTENDERS = (contenders.OFF, contenders.LMDB_QUEUE)
# The target's cell is for equeue; the peer's own ratio stands beside it in the figures.
_Stores = Mapping[tuple[str, int], Path]


def first_get(ready: Callable[[], object], name: str, store: Path) -> float:
    """Seconds to open the store and claim one job, in a process that has not seen it."""
    contender = contenders.make(name)
    contender.load()
    ready()
    start = time.perf_counter()
    contender.open(store)
    item = contender.get()
    elapsed = time.perf_counter() - start
    contender.ack(item)
    contender.close()
    return elapsed


def _fill(name: str, store: Path, depth: int) -> None:
    contender = contenders.make(name)
    contender.open(store)
    for start in range(0, depth, _FILL_BATCH):
        contender.put_many([PAYLOAD] * min(_FILL_BATCH, depth - start))
    contender.close()
    settle(store)


@contextmanager
def _filled(session: Session, names: list[str], depth: int) -> Iterator[_Stores]:
    with ExitStack() as stack:
        stores = {}
        for name in names:
            for jobs in (0, depth):
                stores[name, jobs] = stack.enter_context(session.fresh())
                _fill(name, stores[name, jobs], jobs)
        yield stores


def _opening(name: str, store: Path) -> Measurement:
    def measure() -> float:
        # One more for the one that the measurement takes.
        _fill(name, store, 1)
        return float(in_child(first_get, name, store))

    return measure


def _working(name: str, store: Path, count: int) -> Measurement:
    def measure() -> float:
        contender = contenders.make(name)
        contender.open(store)
        try:
            return seconds_each(round_trips, contender, count)
        finally:
            contender.close()

    return measure


def _run(session: Session) -> Result:
    result = Result()
    depth = session.count(_DEPTH, 1_000)
    names = contenders.installed(_CONTENDERS)
    at_depth = f"{depth:,} pending"
    with _filled(session, names, depth) as stores:
        labels = {(name, jobs): f"{name}, {at_depth if jobs else 'empty'}" for name, jobs in stores}
        opened = result.add(
            "open and first get",
            session.alternate({labels[key]: _opening(key[0], stores[key]) for key in stores}),
        )
        worked = result.add(
            "put+get+ack, off, by depth",
            session.alternate(
                {
                    labels[key]: _working(key[0], stores[key], session.count(10_000, 10))
                    for key in stores
                }
            ),
        )

    def row(work: str, figures: Mapping[str, Figure], limit: float) -> Row:
        ours, empty = labels[contenders.OFF, depth], labels[contenders.OFF, 0]
        return Row(f"{work}, {at_depth}", figures[ours], figures[empty], target=Target(limit))

    if contenders.OFF in names:
        result.rows = [
            row("open and first get", opened, 3.0),
            row("put+get+ack, off", worked, 1.6),
        ]
    return result


WORK = Work(
    name="deep-queue",
    title="A million pending jobs",
    about=(
        "The deep store is filled once and flushed; then, in each round, a new process opens "
        "it and claims one job (imports are not counted), beside the same for a store that "
        "holds that one job only. The round trips run on the same stores, so the job that "
        "`get` returns was put long before the one that `put` adds. lmdb-queue scans all its "
        "jobs to open."
    ),
    run=_run,
)
