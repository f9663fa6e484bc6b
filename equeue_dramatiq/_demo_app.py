"""The demo's application: a module with actors, which the ``dramatiq`` command loads."""

from __future__ import annotations

import os
import time
from pathlib import Path

import dramatiq
from dramatiq.results import Results

from equeue_dramatiq import LMDBBroker, LMDBResultBackend

DIRECTORY = Path(os.environ.get("EQUEUE_DEMO", "."))
"""Where the store is, and the log of what ran."""

DATA = DIRECTORY / "data"
LOG = DIRECTORY / "ran"

broker = LMDBBroker(DATA, done_message_ttl=600_000)
broker.add_middleware(Results(backend=LMDBResultBackend(DATA)))
dramatiq.set_broker(broker)


def _log(what: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{what} {os.getpid()} {time.monotonic()}\n")


def runs(what: str) -> list[tuple[int, float]]:
    """Process id and time of each start of an actor."""
    lines = [line.split() for line in LOG.read_text().splitlines()] if LOG.exists() else []
    return [(int(pid), float(moment)) for name, pid, moment in lines if name == what]


@dramatiq.actor(priority=10)
def send_mail(number: int) -> None:
    """Much to do, nothing urgent."""
    _log("send_mail")
    time.sleep(0.005)


@dramatiq.actor(priority=0)
def raise_alarm() -> None:
    """Urgent."""
    _log("raise_alarm")


@dramatiq.actor
def remind() -> None:
    """To be sent with a delay."""
    _log("remind")


@dramatiq.actor
def resize_picture() -> None:
    """Slow, the first time."""
    _log("resize_picture")
    if len(runs("resize_picture")) == 1:
        time.sleep(60)  # it will not get that far


@dramatiq.actor(store_results=True)
def add(x: int, y: int) -> int:
    """Has a result."""
    return x + y
