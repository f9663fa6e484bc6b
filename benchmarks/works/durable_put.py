"""put with both flushes, on one thread and on many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import contenders
from benchmarks._figures import Reading, Result, Row, Target, Unit
from benchmarks._loops import fresh_seconds_each, puts, threaded_puts_per_second
from benchmarks._session import Session
from benchmarks.works._work import Work

_SINGLE = 'put, sync="full", one thread'
_THREADED = 'put, sync="full", throughput by threads'
_JOBS = {1: 600, 8: 200, 32: 100}
_TARGETS = {8: 3.5, 32: 6.0}


def threads_label(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _run(session: Session) -> Result:
    result = Result()
    _against_floor(session, result)
    if contenders.installed([contenders.FULL]):
        _by_threads(session, result)
    return result


def _against_floor(session: Session, result: Result) -> None:
    count = session.count(800, 5)
    figures = result.add(
        _SINGLE,
        session.alternate(
            {
                name: fresh_seconds_each(session, puts, partial(contenders.make, name), count)
                for name in contenders.installed([contenders.FULL, contenders.RAW_LMDB])
            }
        ),
    )
    ours, floor = figures.get(contenders.FULL), figures.get(contenders.RAW_LMDB)
    result.rows.append(Row("put, full, 1 thread", ours, floor, target=Target(1.2)))


def _by_threads(session: Session, result: Result) -> None:
    def measure(threads: int, count: int) -> Callable[[], float]:
        def measurement() -> float:
            with session.opened(contenders.make(contenders.FULL)) as contender:
                return threaded_puts_per_second(contender, threads, count)

        return measurement

    figures = result.add(
        _THREADED,
        session.alternate(
            {
                threads_label(threads): measure(threads, session.count(jobs, 2))
                for threads, jobs in _JOBS.items()
            },
            Unit.PER_SECOND,
        ),
    )
    for threads, limit in _TARGETS.items():
        result.rows.append(
            Row(
                f"put, full, {threads} threads",
                figures[threads_label(threads)],
                figures[threads_label(1)],
                Reading.THROUGHPUT,
                Target(limit, at_least=True),
            )
        )


WORK = Work(
    name="durable-put",
    title=_SINGLE,
    about=(
        'When a `put` with `sync="full"` returns, the job survives a power cut: two flushes. '
        "The floor is one bare LMDB transaction with one put of the same payload, under one "
        "`flock`, with the same two flushes. With several threads, group commit lets one pair "
        "of flushes carry the jobs of many."
    ),
    run=_run,
)
