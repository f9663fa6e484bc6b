"""Counting what a piece of code calls: functions in C by name, and Python functions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PYTHON = "Python function"


def count_calls(operation: Callable[[], object], times: int) -> dict[str, float]:
    """Calls by qualified name for each run of ``operation``, averaged over ``times``.

    A function written in C counts under its qualified name ("Transaction.put", "flock"), all
    Python functions together under ``PYTHON``. The operation's own call is not counted.
    """
    seen: Counter[str] = Counter()

    def observe(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            seen[argument.__qualname__] += 1
        elif event == "call":
            seen[PYTHON] += 1

    for _ in range(times):
        sys.setprofile(observe)
        operation()
        sys.setprofile(None)
    # The observer sees the operation itself, and its own removal.
    seen[PYTHON] -= times
    seen["setprofile"] -= times
    return {name: number / times for name, number in seen.items() if number > 0}


def written(operation: Callable[[], object], times: int) -> tuple[float, float] | None:
    """System calls that write, and bytes written, for each run; None where it is not told."""
    before = _written()
    for _ in range(times):
        operation()
    after = _written()
    if before is None or after is None:
        return None
    return (after[0] - before[0]) / times, (after[1] - before[1]) / times


def _written() -> tuple[int, int] | None:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(": ") for line in lines)
    return int(fields["syscw"]), int(fields["wchar"])
