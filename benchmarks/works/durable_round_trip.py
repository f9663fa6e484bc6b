"""put, get and ack where each of them is really flushed."""

from __future__ import annotations

from functools import partial

from benchmarks import contenders
from benchmarks._figures import Reading, Result, Row, Target
from benchmarks._loops import fresh_seconds_each, round_trips
from benchmarks._session import Session
from benchmarks.works._work import Work

_TITLE = "put+get+ack, flushed"
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
    contenders.HUEY: None,
    contenders.VALKEY_FLUSHED: None,
}


def _run(session: Session) -> Result:
    result = Result()
    count = session.count(500, 3)
    figures = result.add(
        _TITLE,
        session.alternate(
            {
                name: fresh_seconds_each(
                    session, round_trips, partial(contenders.make, name), count
                )
                for name in contenders.installed(_CONTENDERS)
            }
        ),
    )
    result.rows = [
        Row(
            "put+get+ack, full",
            figures.get(contenders.FULL),
            figures.get(peer),
            Reading.FASTER,
            target,
        )
        for peer, target in _TARGETS.items()
    ]
    return result


WORK = Work(
    name="durable-round-trip",
    title=_TITLE,
    about=(
        "Every contender flushes at each commit. persist-queue, litequeue and huey's storage "
        "run SQLite in WAL mode with `synchronous=FULL`, one flush a commit, three commits a "
        "round trip; huey's storage has no ack and makes two, and loses a job whose worker "
        'crashes. equeue makes four flushes with `sync="full"` (put 2, get 1, ack 1): a put '
        "that returned is never lost, while the very last get or ack may be undone by a power "
        "cut. Valkey runs with `appendfsync always`. The stores are kept short (550 jobs), "
        "which favours the SQLite queues: they search among the acked rows that they keep."
    ),
    run=_run,
)
