"""The demo's jobs: functions as any application of RQ has them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

DIRECTORY = Path(os.environ.get("EQUEUE_DEMO", "."))
"""Where the store is, and the log of what ran."""

LOG = DIRECTORY / "ran"


class Run(NamedTuple):
    """A start of a job: the work horse's process, its worker's, and the monotonic time in seconds."""

    horse: int
    worker: int
    at: float


def _log(what: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{what} {os.getpid()} {os.getppid()} {time.monotonic()}\n")


def runs(what: str) -> list[Run]:
    """Each start of a job."""
    lines = [line.split() for line in LOG.read_text().splitlines()] if LOG.exists() else []
    return [
        Run(int(horse), int(worker), float(moment))
        for name, horse, worker, moment in lines
        if name == what
    ]


def send_mail(number: int) -> str:
    """Quick."""
    _log("send_mail")
    return f"mail {number} is sent"


def resize_picture() -> None:
    """Slow, the first time."""
    _slow("resize_picture")


def cut_film() -> None:
    """Slow, the first time."""
    _slow("cut_film")


def _slow(what: str) -> None:
    _log(what)
    if len(runs(what)) == 1:
        time.sleep(60)  # it will not get that far
