"""The comparisons with Redis that several works make."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import connections
from benchmarks._figures import Figure, Row, Target

_PAIRS = (
    ("off", connections.OFF, connections.REDIS),
    ("full", connections.FULL, connections.REDIS_FLUSHED),
)


def rows(
    work: str, times: Mapping[str, Figure], off: float | None = None, full: float | None = None
) -> list[Row]:
    """Our times by Redis's, as far as both were measured.

    ``off`` and ``full`` are the targets: what persists nothing beside a server that does not, and what is
    flushed beside one that flushes.
    """
    limits = {"off": off, "full": full}
    return [
        Row(f"{work}, {mode}", times[ours], times[peer], target=_target(limits[mode]))
        for mode, ours, peer in _PAIRS
        if ours in times and peer in times
    ]


def _target(limit: float | None) -> Target | None:
    return None if limit is None else Target(limit)
