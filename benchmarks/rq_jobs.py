"""The functions that RQ's workers run in the RQ part.

A work horse imports them anew for each job, so this module imports hardly anything.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

from rq import get_current_job

from benchmarks._board import Pen

VARIABLE = "BENCHMARKS_RQ_BOARD"
"""The environment variable that says where the board is."""


def nothing() -> None:
    """Do nothing."""


def count() -> None:
    """Wait at the gate, and note the moment."""
    pen = _pen()
    pen.pass_gate()
    pen.note(time.monotonic_ns())


def stamp(sent: int) -> None:
    """Note the nanoseconds since the moment that is given."""
    now = time.monotonic_ns()
    _pen().note(now - sent)


def _pen() -> Pen:
    job = get_current_job()
    assert job is not None
    return _pen_of(job.worker_name)


@cache
def _pen_of(worker: str) -> Pen:
    # By worker, not by process: one horse goes on with what another one noted.
    return Pen(Path(os.environ[VARIABLE]), worker)
