"""The works of the RQ part in the order in which they run."""

from __future__ import annotations

from benchmarks.connections._workers import FORKING, SIMPLE
from benchmarks.works._work import Work
from benchmarks.works.rq import (
    backlog,
    burst,
    command,
    commands,
    empty,
    enqueue,
    latency,
    profile,
)

WORKS: tuple[Work, ...] = (
    enqueue.WORK,
    burst.WORK,
    command.WORK,
    backlog.WORK,
    commands.WORK,
    empty.WORK,
    latency.WORK,
    profile.WORK,
)

PANELS = (
    enqueue.TITLE,
    burst.SIMPLE_TITLE,
    burst.FORKING_TITLE,
    command.title(FORKING),
    latency.title(SIMPLE),
)

__all__ = ["PANELS", "WORKS"]
