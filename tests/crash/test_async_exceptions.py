"""Exceptions between any two bytecodes, and handlers that use the queue inside its operations."""

from __future__ import annotations

import fcntl
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue

from . import _bombard
from ._ledger import Journal, Story, assert_sound
from ._procs import Child, wait_asleep
from ._work import MANY, Worker

Spawn = Callable[..., Child]
WATCHDOG = 200.0
#: hits and the longest time between two, in microseconds: about an operation's time in each mode
MODES = [("off", 10_000, 400), ("normal", 3_000, 800), ("full", 1_500, 1_500)]
LONG = [
    pytest.param(sync, 20 * hits, longest, marks=pytest.mark.torture)
    for sync, hits, longest in MODES
]


def bombard(
    path: Path, spawn: Spawn, sync: str, program: Callable[..., None], *args: object
) -> tuple[int, int]:
    """Run a program beside a process that must go on. Returns hits and how many were caught."""
    log = path.with_name("journal")
    with Queue(path, sync=sync, max_retries=MANY, vacuum_interval=86400) as queue:
        queue.stats()
        prober = spawn(_bombard.probe, path)
        assert prober.line() == "ready"
        victim = spawn(program, path, log, *args)
        hits, caught, running = map(int, victim.line(WATCHDOG * 20).split())

        prober.tell("enough")
        rounds, longest = prober.line().split()
        assert int(rounds) > 10
        assert float(longest) < 10, "the lock was left behind for a while"
        # Nobody holds a record any more, and the victim is still alive.
        assert running == 0
        assert_sound(queue.store)
        journal = Journal(log)
        Worker(queue, journal, "test").drain()
        journal.close()
        Story.read(log).check(queue)
        assert_sound(queue.store)
        victim.tell("bye")
        victim.finish()
        return hits, caught


@pytest.mark.parametrize(("sync", "hits", "longest"), [*MODES, *LONG])
@pytest.mark.parametrize("program", [_bombard.signals, _bombard.async_exceptions])
def test_exceptions_at_random_points(
    path: Path,
    spawn: Spawn,
    program: Callable[..., None],
    sync: str,
    hits: int,
    longest: int,
) -> None:
    fired, caught = bombard(path, spawn, sync, program, hits, longest)
    assert fired >= hits
    # Python itself drops what is raised inside a destructor; the engine must drop none.
    assert caught > 0.95 * fired


@pytest.mark.parametrize(("sync", "hits", "longest"), [*MODES, *LONG])
@pytest.mark.parametrize("threads", [0, 3])
def test_handlers_that_use_the_queue_inside_an_operation(
    path: Path, spawn: Spawn, sync: str, hits: int, longest: int, threads: int
) -> None:
    runs = hits // 2
    done, _ = bombard(path, spawn, sync, _bombard.nested, runs, longest, threads)
    assert done >= runs
    story = Story.read(path.with_name("journal"))
    # Without exceptions everything that began has returned: the counters are exact.
    assert story.begun == story.put.keys()
    with Queue(path) as queue:
        assert queue.stats()["total"] == len(story.put)
        assert queue.stats()["done"] == len(story.acked)


def test_a_handler_that_uses_the_store_while_it_is_being_opened(path: Path, spawn: Spawn) -> None:
    with Queue(path) as queue:
        queue.stats()
    with (path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = spawn(_bombard.handler_while_opening, path)
        assert child.line() == "opening"
        wait_asleep(child.pid)
        child.signal(signal.SIGUSR2)
        assert child.line() == "in the handler"
        wait_asleep(child.pid)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert child.line() == "2"
        child.finish()
