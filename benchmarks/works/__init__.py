"""The works in the order in which they run."""

from __future__ import annotations

from benchmarks.works import (
    batches,
    deep_queue,
    durable_put,
    durable_round_trip,
    idle,
    memory,
    profile,
    round_trip,
    wake_up,
)
from benchmarks.works._work import Work

WORKS: tuple[Work, ...] = (
    round_trip.WORK,
    batches.WORK,
    durable_put.WORK,
    durable_round_trip.WORK,
    wake_up.WORK,
    deep_queue.WORK,
    memory.WORK,
    idle.WORK,
    profile.WORK,
)

__all__ = ["WORKS", "Work"]
