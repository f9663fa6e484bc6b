"""The works of the Dramatiq part in the order in which they run."""

from __future__ import annotations

from benchmarks.works._work import Work
from benchmarks.works.dramatiq import command, enqueue, latency, process, results

WORKS: tuple[Work, ...] = (
    enqueue.WORK,
    process.WORK,
    command.WORK,
    latency.WORK,
    results.WORK,
)

PANELS = (
    enqueue.TITLE,
    process.TITLE,
    command.title(processes=2),
    latency.SCENES[0].title,
)

__all__ = ["PANELS", "WORKS"]
