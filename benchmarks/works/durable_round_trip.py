"""put, get and ack where each of them is really flushed."""

from __future__ import annotations

from functools import partial

from benchmarks import _bare, contenders
from benchmarks._figures import Figure, Reading, Result, Row, Target
from benchmarks._loops import fresh_seconds_each, round_trips
from benchmarks._session import Session
from benchmarks.works._work import Work

_TITLE = "put+get+ack, flushed"
_NEW = "put+get+ack, flushed, first 100 jobs of a new store"
_FLOOR = "LMDB transactions alone, same flushes"
_CONTENDERS = (
    contenders.FULL,
    contenders.NORMAL,
    contenders.PERSIST_QUEUE,
    contenders.LITEQUEUE,
    contenders.HUEY,
    contenders.VALKEY_FLUSHED,
)
_TARGETS = {
    contenders.PERSIST_QUEUE: Target(1.5, at_least=True),
    contenders.LITEQUEUE: Target(1.5, at_least=True),
}


def _run(session: Session) -> Result:
    result = Result()
    steady = _measured(session, result, _TITLE, session.count(400, 3), session.count(400, 3))
    new = _measured(session, result, _NEW, session.count(100, 3), session.count(10))
    ours = contenders.FULL
    for peer in _CONTENDERS[2:]:
        result.rows.append(
            Row(
                "put+get+ack, full",
                steady.get(ours),
                steady.get(peer),
                Reading.FASTER,
                _TARGETS.get(peer),
            )
        )
    result.rows.append(Row("put+get+ack, full", steady.get(ours), steady.get(_FLOOR)))
    for peer in _TARGETS:
        result.rows.append(
            Row("put+get+ack, full, new store", new.get(ours), new.get(peer), Reading.FASTER)
        )
    return result


def _measured(
    session: Session, result: Result, title: str, count: int, warm_up: int
) -> dict[str, Figure]:
    measurements = {
        name: fresh_seconds_each(
            session, round_trips, partial(contenders.make, name), count, warm_up
        )
        for name in contenders.installed(_CONTENDERS)
    }
    floor = _bare.fresh_round_trip(session, _bare.Options(flushed=True), count, warm_up)
    return result.add(title, session.alternate(measurements | {_FLOOR: floor}))


WORK = Work(
    name="durable-round-trip",
    title=_TITLE,
    about=(
        "Every contender flushes at each commit. persist-queue, litequeue and huey's storage "
        "run SQLite in WAL mode with `synchronous=FULL`: one flush a commit, three commits a "
        "round trip. huey's storage has no ack and makes two, and loses a job whose worker "
        'crashes. equeue makes four flushes with `sync="full"` (put 2, get 1, ack 1) and three '
        'with `sync="normal"`: a B+tree of pages needs the data on the disk before the page that '
        "points to it, where a log needs one flush. The last line is the floor: the three "
        "transactions written by hand, with the same four flushes. A put that returned is never "
        "lost in `full`; the very last get or ack may be undone by a power cut, and the job runs "
        "again. Valkey runs with `appendfsync always`.\n\n"
        "The targets are judged on stores that have seen 400 jobs. A new SQLite store is slower: "
        "its write-ahead log still grows, and a flush that changes a file's length costs the file "
        "system about twice as much. That lasts until the log's first checkpoint, some 200 jobs, "
        "and the figures of the first 100 are shown apart."
    ),
    run=_run,
)
