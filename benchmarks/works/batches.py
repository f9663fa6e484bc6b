"""Batches of 100 against single jobs."""

from __future__ import annotations

from functools import partial

from benchmarks import contenders
from benchmarks._figures import Result, Row, Target
from benchmarks._loops import batches, fresh_seconds_each, round_trips
from benchmarks._session import Session
from benchmarks.works._work import Work

_TITLE = "put+get+ack in batches of 100, for each job"
_LOOPS = {
    contenders.OFF: batches,
    contenders.FULL: batches,
    contenders.LMDB_QUEUE: round_trips,
}


def _run(session: Session) -> Result:
    result = Result()
    count = session.count(20_000, 100)
    figures = result.add(
        _TITLE,
        session.alternate(
            {
                name: fresh_seconds_each(session, loop, partial(contenders.make, name), count)
                for name, loop in _LOOPS.items()
                if contenders.installed([name])
            }
        ),
    )
    result.rows = [
        Row(
            "put+get+ack, off, batches of 100",
            figures.get(contenders.OFF),
            figures.get(contenders.LMDB_QUEUE),
            target=Target(0.15),
        ),
        Row(
            "put+get+ack, full, batches of 100",
            figures.get(contenders.FULL),
            figures.get(contenders.LMDB_QUEUE),
        ),
    ]
    return result


WORK = Work(
    name="batches",
    title=_TITLE,
    about=(
        "`put_many`, `get_many` and `ack_many` of 100 jobs, each one commit. lmdb-queue has no "
        "batches, so its figure is that of single jobs, and it flushes nothing: `full` is shown "
        "beside it because a batch spreads its four flushes over a hundred jobs."
    ),
    run=_run,
)
