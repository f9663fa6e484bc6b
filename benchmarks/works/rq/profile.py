"""Where the time of a job goes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import _table, connections, rq_jobs
from benchmarks._children import in_child
from benchmarks._figures import Result, Unit
from benchmarks._session import Measurement, Session
from benchmarks.connections import Address, ConnectionContender, _layers
from benchmarks.connections._workers import SIMPLE, queue_on, seconds_each
from benchmarks.works._work import Work

_CONTENDERS = (connections.OFF, connections.REDIS)
_COUNT = 800
_STAGES = ("enqueue", "worked off by SimpleWorker")
_micro = Unit.SECONDS.write


class _Split(NamedTuple):
    """Seconds for each job by layer, and how often it entered each."""

    seconds: Mapping[str, float]
    entered: Mapping[str, float]


def split(
    ready: Callable[[], object], name: str, address: Address, directory: str, count: int
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Both stages of a job by layers."""
    connection = connections.make(name).connect(address)
    watch = _layers.attach()
    queue = queue_on(connection)
    warm_up = max(1, count // 10)
    found = []

    def stop() -> None:
        seconds = watch.stop()
        found.append(
            tuple(
                {key: value / count for key, value in each.items()}
                for each in (seconds, watch.entered)
            )
        )

    ready()
    for _ in range(warm_up):
        queue.enqueue(rq_jobs.count)
    watch.start()
    for _ in range(count):
        queue.enqueue(rq_jobs.count)
    stop()
    queue.enqueue(rq_jobs.count)
    # RQ looks the function up by its name when it runs the job.
    rq_jobs.count = _between(rq_jobs.count, warm_up, watch.start, warm_up + count, stop)
    seconds_each(connection, SIMPLE, Path(directory), warm_up, count)
    return found


def _between(
    function: Callable[[], object],
    first: int,
    begin: Callable[[], object],
    last: int,
    end: Callable[[], object],
) -> Callable[[], None]:
    """The function, of which one call begins something, and a later one ends it."""
    at = {first: begin, last: end}
    calls = 0

    def call() -> None:
        nonlocal calls
        function()
        at.get(calls, lambda: None)()
        calls += 1

    return call


def _run(session: Session) -> Result:
    result = Result()
    splits: dict[str, list[list[_Split]]] = {}
    with connections.serving(session, _CONTENDERS) as served:
        session.alternate(
            {name: _measurement(session, name, served[name], splits) for name in served}
        )
    for number, stage in enumerate(_STAGES):
        rounds = {name: [each[number] for each in series] for name, series in splits.items()}
        result.notes.append(f"### {stage}\n\n{_stage(rounds)}")
    return result


def _measurement(
    session: Session,
    name: str,
    contender: ConnectionContender,
    splits: dict[str, list[list[_Split]]],
) -> Measurement:
    def measure() -> float:
        with session.fresh() as directory:
            address = contender.place(directory)
            count = session.count(_COUNT, 5)
            found = in_child(split, name, address, str(directory), count)
        splits.setdefault(name, []).append([_Split(*each) for each in found])
        return 0.0  # the table is made of the splits

    return measure


def _stage(rounds: Mapping[str, Sequence[_Split]]) -> str:
    """The table of a stage: medians of the layers, and their sum."""
    lines = []
    sums = {}
    columns: dict[str, dict[str, float]] = {}
    for name, splits in rounds.items():
        columns[name] = {
            layer: statistics.median(split.seconds[layer] for split in splits)
            for layer in _layers.LAYERS
        }
        sums[name] = sum(columns[name].values())
    for layer in _layers.LAYERS:
        cells = [layer]
        for name, column in columns.items():
            seconds, times = column[layer], rounds[name][-1].entered[layer]
            cells += [
                f"{times:.3g}" if times else "-",
                _micro(seconds) if seconds else "-",
                f"{seconds / sums[name] * 100:.0f} %",
            ]
        lines.append(cells)
    lines.append(
        ["together", *(cell for name in columns for cell in ("", _micro(sums[name]), "100 %"))]
    )
    headings = ["layer"]
    for name in columns:
        headings += [f"{name}: times entered", "for each job", "share"]
    return _table.markdown(headings, lines)


WORK = Work(
    name="rq-profile",
    title="Where the time of a job goes",
    about=(
        "A stopwatch that is switched where one layer calls another, on an otherwise idle queue; it "
        "takes some time itself, so the sums are a little higher than the figures above. On "
        "LMDBRedis the connection turns arguments into words, finds the command, and shapes the "
        "answer; on Redis it also waits for the server. Medians of the rounds."
    ),
    run=_run,
)
