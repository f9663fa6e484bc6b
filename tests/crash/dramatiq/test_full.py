"""No room: sends are refused, workers go on, and what cannot be stored now is stored later."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from dramatiq.errors import ConnectionClosed

from .._ledger import assert_sound
from .._mounts import Filler, mounted
from .._procs import wait_until
from .._watch import Gate
from ._application import Application
from ._commands import Starter, Watch

pytestmark = pytest.mark.once

MIB = 1 << 20
HOUR = 3_600_000
BIG = 300_000
"""Bytes of a message that finds no place among what others leave."""


class Disk:
    """A disk that others fill."""

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, directory: Path) -> None:
        self._filler = Filler(directory)

    def fill(self, application: Application) -> None:
        self._filler.fill()

    def free(self, application: Application) -> None:
        self._filler.remove()


class Limit:
    """A store that may not grow; messages for much later fill it."""

    options: ClassVar[dict[str, Any]] = {"map_size": 2 * MIB}

    def __init__(self, directory: Path) -> None:
        pass

    def fill(self, application: Application) -> None:
        send_until_refused(application, "x" * 10_000, delay=HOUR)

    def free(self, application: Application) -> None:
        application.broker.queue("default").purge("scheduled")


def send_until_refused(application: Application, token: str, **options: Any) -> list[str]:
    """The tokens of those that were taken."""
    sent: list[str] = []
    for number in itertools.count():
        try:
            application.send("mark", f"{token}-{number}", **options)
        except ConnectionClosed:
            break
        sent.append(f"{token}-{number}")
    return sent


@pytest.fixture(params=[Disk, Limit])
def trouble(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk | Limit]:
    """A store on a small file system of its own, and how it becomes full."""
    with mounted("tmpfs", tmp_path / "disk", 8 * MIB) as directory:
        yield request.param(directory)


@pytest.fixture(params=["off", "full"])
def options(
    request: pytest.FixtureRequest, tmp_path: Path, trouble: Disk | Limit
) -> dict[str, Any]:
    return {"path": str(tmp_path / "disk" / "store"), "sync": request.param, **trouble.options}


@pytest.fixture
def application(tmp_path: Path, options: dict[str, Any]) -> Iterator[Application]:
    application = Application(tmp_path, **options)
    yield application
    application.close()


@pytest.mark.contract("DRE-03", "DRM-13")
def test_a_retry_that_cannot_be_stored_is_stored_when_there_is_room(
    application: Application,
    options: dict[str, Any],
    trouble: Disk | Limit,
    watch: Watch,
    gate: Gate,
    other_gate: Gate,
    start: Starter,
) -> None:
    command = start(2, 2, options=options)
    application.send("hold_and_fail", "failing", "x" * BIG)
    watch.wait("start", "failing")
    others = [f"{number}" for number in range(100)]
    for token in others:
        application.send("hold_in_other", token)
    watch.wait("start", count=4)
    trouble.fill(application)
    others += send_until_refused(application, "more")

    gate.open()
    wait_until(lambda: "Failed to post_process_message" in command.log(), "the retry is refused")
    running = application.broker.queue("default").jobs("running")
    assert any(b"hold_and_fail" in job.payload for job in running), "it is still in hand"
    other_gate.open()
    watch.wait("acked", count=len(others))
    assert watch.of("acked", "failing") == []

    trouble.free(application)
    application.join()
    watch.check(["failing", "failing+1", *others])
    assert len(watch.of("start")) == len(others) + 2, "and what was refused is not there"
    assert_sound(application.broker.store)
