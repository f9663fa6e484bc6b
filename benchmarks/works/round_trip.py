"""put, get and ack of one job with nothing flushed."""

from __future__ import annotations

from functools import partial

from benchmarks import contenders
from benchmarks._figures import Reading, Result, Row, Target
from benchmarks._loops import fresh_seconds_each, round_trips
from benchmarks._session import Session
from benchmarks.works._work import Work

_TITLE = "put+get+ack, nothing flushed"
_COUNTS = {
    contenders.OFF: 20_000,
    contenders.OFF_NOT_KEPT: 20_000,
    contenders.LMDB_QUEUE: 20_000,
    contenders.VALKEY: 2_000,
}


def _run(session: Session) -> Result:
    result = Result()
    figures = result.add(
        _TITLE,
        session.alternate(
            {
                name: fresh_seconds_each(
                    session, round_trips, partial(contenders.make, name), session.count(count, 10)
                )
                for name, count in _COUNTS.items()
                if contenders.installed([name])
            }
        ),
    )
    ours, lmdb_queue = figures.get(contenders.OFF), figures.get(contenders.LMDB_QUEUE)
    result.rows = [
        Row("put+get+ack, off", ours, lmdb_queue, target=Target(0.7)),
        Row("put+get+ack, off, DONE not kept", figures.get(contenders.OFF_NOT_KEPT), lmdb_queue),
        Row("put+get+ack, off", ours, figures.get(contenders.VALKEY), Reading.FASTER),
    ]
    return result


WORK = Work(
    name="round-trip",
    title=_TITLE,
    about=(
        "One thread puts a job of 100 bytes, gets it and acks it. Nothing is flushed: after a "
        "power cut all of these may have lost jobs. lmdb-queue writes into the mapped file "
        "(`writemap`), which needs no system call but kills the process when the disk is full; "
        "equeue takes a kernel lock and writes pages with `pwrite`. Both keep DONE jobs for "
        "300 s by default; the second line shows equeue with `vacuum_interval=0.01`, where the "
        "next operations delete what is done. Valkey runs without any persistence, over "
        "loopback TCP."
    ),
    run=_run,
)
