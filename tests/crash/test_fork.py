"""Processes that fork while they use the store, in every way that Python programs do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue

from . import _forks
from ._ledger import Journal, Story, assert_sound
from ._procs import Child
from ._work import Worker

Spawn = Callable[..., Child]


def finish(path: Path, log: Path) -> None:
    """Drain what is left and hold the journal against the store."""
    with _forks.open_queue(str(path)) as queue:
        journal = Journal(log)
        Worker(queue, journal, "test").drain()
        journal.close()
        Story.read(log).check(queue, frozenset({"held", "plain"}))
        assert_sound(queue.store)


@pytest.mark.parametrize("sync", ["off", "normal", "full"])
def test_a_hundred_forks_while_threads_are_busy(path: Path, spawn: Spawn, sync: str) -> None:
    with Queue(path, sync=sync) as queue:
        queue.stats()
    log = path.with_name("journal")
    child = spawn(_forks.storm, path, log, 100)
    assert child.line() == "done"
    child.finish()
    finish(path, log)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(path: Path, spawn: Spawn, method: str) -> None:
    log = path.with_name("journal")
    child = spawn(_forks.start_method, path, log, method)
    assert child.line() == "done"
    child.finish()
    finish(path, log)


def test_a_preloaded_web_application(path: Path, spawn: Spawn) -> None:
    log = path.with_name("journal")
    child = spawn(_forks.preload, path, log)
    assert child.line() == "done"
    child.finish()
    finish(path, log)


@pytest.mark.parametrize("way", ["_exit", "exit", "close", "SIGKILL"])
def test_a_child_never_owns_its_parents_claim(path: Path, spawn: Spawn, way: str) -> None:
    parent = spawn(_forks.inherit, path, way)
    assert parent.line() == "ack nack fail release", "refused in the child"
    assert parent.line() == "running 1"
    with Queue(path) as queue:
        assert queue.recover() == 0
        assert queue.job(1).state.value == "running"
        parent.tell("go on")
        assert parent.line() == "done"
        parent.finish()
        assert queue.stats()["pending"] == 2
        assert_sound(queue.store)


def test_one_object_in_three_generations(path: Path, spawn: Spawn) -> None:
    assert spawn(_forks.generations, path).line() == "3"


def test_a_daemon_that_forks_twice(path: Path, spawn: Spawn) -> None:
    assert spawn(_forks.daemonize, path).line() == "before"
    with Queue(path) as queue:
        assert queue.get(10).payload == "after"


def test_a_fork_that_runs_no_hooks(path: Path, spawn: Spawn) -> None:
    assert spawn(_forks.fork_in_c, path).line() == "3"


def test_a_fork_while_a_thread_waits_for_a_job(path: Path, spawn: Spawn) -> None:
    child = spawn(_forks.fork_while_waiting, path)
    assert json.loads(child.line()) == list(range(20))
    child.finish()


def test_a_fork_while_a_thread_opens_the_store(path: Path, spawn: Spawn) -> None:
    child = spawn(_forks.fork_while_opening, path)
    assert child.line() == "True"
    assert child.line() == "2"
    child.finish()
