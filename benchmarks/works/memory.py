"""Memory that a claimed job takes in the process that holds it."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks import contenders
from benchmarks._children import in_child
from benchmarks._figures import Reading, Result, Row, Target, Unit
from benchmarks._loops import PAYLOAD
from benchmarks._session import Measurement, Session
from benchmarks.works._work import Work

_CONTENDERS = (contenders.OFF, contenders.LMDB_QUEUE)
_TRACED = "Python's allocations (tracemalloc)"
_RESIDENT = "resident size of the process"


def held(ready: Callable[[], object], name: str, store: Path, count: int, traced: bool) -> float:
    """Bytes for each of ``count`` records claimed one by one and held."""
    contender = contenders.make(name)
    contender.open(store)
    get = contender.get
    records = [None] * count
    for _ in range(100):
        contender.put(PAYLOAD)
        contender.ack(get())
    contender.put_many([PAYLOAD] * count)
    ready()
    gc.collect()
    measure = _traced_bytes if traced else _resident_bytes
    if traced:
        tracemalloc.start()
    before = measure()
    for index in range(count):
        records[index] = get()
    gc.collect()
    after = measure()
    tracemalloc.stop()
    for record in records:
        contender.ack(record)
    contender.close()
    return (after - before) / count


def _traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


def _resident_bytes() -> int:
    # Anonymous memory alone: the mapped file's pages are the page cache, not the records.
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise OSError("this system does not report RssAnon")


def _run(session: Session) -> Result:
    result = Result()
    names = contenders.installed(_CONTENDERS)
    count = session.count(20_000, 100)

    def measurement(name: str, traced: bool) -> Measurement:
        def measure() -> float:
            with session.fresh() as store:
                return float(in_child(held, name, store, count, traced))

        return measure

    for title, traced in ((_TRACED, True), (_RESIDENT, False)):
        if not traced and not os.path.exists("/proc/self/status"):
            continue
        figures = result.add(
            f"memory for each held record, {title}",
            session.alternate({name: measurement(name, traced) for name in names}, Unit.BYTES),
        )
        if contenders.OFF in figures:
            result.rows.append(
                Row(
                    f"memory for each held Record, {'tracemalloc' if traced else 'resident'}",
                    figures[contenders.OFF],
                    figures.get(contenders.LMDB_QUEUE),
                    Reading.SIZE,
                    target=Target(600, unit=Unit.BYTES) if traced else None,
                )
            )
    return result


WORK = Work(
    name="memory",
    title="Memory of held records",
    about=(
        "20,000 jobs with a payload of 100 bytes are claimed and held in one process. The "
        "figure includes the decoded payload (a `str` of 100 characters takes 149 bytes) and "
        "all that the library remembers about the claim. The target is judged on what Python "
        "allocates (tracemalloc); the growth of the resident anonymous memory is the check on it."
    ),
    run=_run,
)
