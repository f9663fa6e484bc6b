"""How a child process talks with its test: lines on standard input and output."""

from __future__ import annotations

import select
import sys


def say(*values: object) -> None:
    print(*values, flush=True)


def hear() -> str:
    """The next line from the test. The process ends, in order, when the test closes the pipe."""
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return line.strip()


def called() -> bool:
    """Whether the test has sent something."""
    return bool(select.select([sys.stdin], [], [], 0)[0])
