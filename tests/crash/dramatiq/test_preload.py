"""A broker that is made when modules are imported, and processes that fork or start themselves anew."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .._procs import Child
from .._watch import Gate
from . import _preload
from ._application import Application
from ._commands import Starter, Watch

pytestmark = pytest.mark.once

Spawn = Callable[..., Child]
PROMPT = 2.0
"""Seconds that a busy machine may add to what is to happen at once."""


@pytest.mark.contract("DRM-14")
def test_importing_touches_no_disk(tmp_path: Path, spawn: Spawn) -> None:
    child = spawn(_preload.imported_only, tmp_path)
    assert child.line() == "journal", "the test's own file, and no store"
    child.finish()


@pytest.mark.contract("DRM-14")
@pytest.mark.parametrize("used", ["unused", "used"])
def test_a_server_that_forks_after_loading(
    application: Application, watch: Watch, tmp_path: Path, spawn: Spawn, used: str
) -> None:
    """Also while the parent's threads use the broker."""
    child = spawn(_preload.preload, tmp_path, 100, used)
    assert child.line() == "forked"
    names = ["parent", *(f"child.{number}" for number in range(_preload.CHILDREN))]
    sent = [f"{name}-{number}" for name in names for number in range(100)]
    for token in sent:
        watch.wait("acked", token)
    child.tell("enough")
    assert set(child.line().split()) == {"0"}
    child.finish()
    application.join()
    watch.check([*sent, *(["before"] if used == "used" else [])])
    assert application.broker.stats("default")["total"] == len(sent) + (used == "used")


@pytest.mark.contract("DRM-14")
def test_an_actor_that_forks(application: Application, watch: Watch, start: Starter) -> None:
    start(2, 4).workers()
    tokens = [f"{number}" for number in range(20)]
    for token in tokens:
        application.send("forks", token)
    for token in tokens:
        watch.wait("acked", f"{token}-child")
    application.join()
    watch.check([*tokens, *(f"{token}-child" for token in tokens)])


def test_a_development_server_that_starts_itself_anew(
    application: Application, watch: Watch, gate: Gate, tmp_path: Path, spawn: Spawn
) -> None:
    child = spawn(_preload.reload, tmp_path, 1)
    assert child.line() == "up 1"
    application.send("hold", "long")
    watch.wait("start", "long")
    child.tell("reload")
    assert child.line() == "up 2"
    up_at = time.monotonic()
    first, second = watch.wait("start", "long", 2)
    assert first.pid == second.pid == child.pid
    assert second.retries == 1
    assert second.at - up_at < PROMPT
    gate.open()
    watch.wait("acked", "long")
