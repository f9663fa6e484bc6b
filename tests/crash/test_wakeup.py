"""Waiting costs nothing, and it ends at once when a job comes."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue

from . import _waiters
from ._ledger import assert_sound
from ._procs import Child, cpu_seconds, io_counters, wait_asleep, wait_until

pytestmark = pytest.mark.once

Spawn = Callable[..., Child]
#: Consumers look for themselves once a second, whatever else fails.
BACKSTOP = 1.0


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.torture)])
def test_idle_consumers_use_no_cpu_and_no_disk(path: Path, spawn: Spawn, seconds: int) -> None:
    with Queue(path) as queue:
        queue.stats()
        waiters = [spawn(_waiters.wait, path, 600) for _ in range(8)]
        wait_asleep(*(waiter.pid for waiter in waiters))
        # What is written to a mapped page counts once for each time that the page was clean.
        _write_back(path)
        before = [(cpu_seconds(w.pid), io_counters(w.pid)) for w in waiters]
        start = time.monotonic()
        time.sleep(seconds)  # what is measured is time that passes
        elapsed = time.monotonic() - start
        for waiter, (cpu, io) in zip(waiters, before, strict=True):
            assert (cpu_seconds(waiter.pid) - cpu) / elapsed < 0.002
            now = io_counters(waiter.pid)
            assert (now["wchar"], now["write_bytes"]) == (io["wchar"], io["write_bytes"])
        # They were waiting all the time, and for this.
        queue.put_many(range(8))
        assert sorted(int(waiter.line()) for waiter in waiters) == list(range(8))


def _write_back(directory: Path) -> None:
    for file in directory.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened)


@pytest.mark.parametrize("waiters", [1, 8])
def test_a_put_is_claimed_in_another_process_within_a_millisecond(
    path: Path, spawn: Spawn, waiters: int
) -> None:
    with Queue(path, sync="off") as queue:
        queue.stats()
        children = [spawn(_waiters.echo, path) for _ in range(waiters)]
        for child in children:
            assert child.line() == "ready"
        medians: list[float] = []
        # A busy machine spoils a round, hardly three.
        while len(medians) < 3 and (not medians or medians[-1] >= 0.001):
            medians.append(statistics.median(_delays(queue, children, 200)))
        assert min(medians) < 0.001, medians
        assert_sound(queue.store)


def _delays(queue: Queue[Any], children: list[Child], rounds: int) -> list[float]:
    delays: list[float] = []
    for _ in range(rounds):
        wait_asleep(*(child.pid for child in children))
        queue.put(time.monotonic())
        delays.append(float(_first_line(children).split()[1]))
    return delays


def _first_line(children: list[Child]) -> str:
    """What the one of them that got the job says."""
    wait_until(lambda: any(child.has_line() for child in children), "a child takes the job")
    return next(child for child in children if child.has_line()).line()


@pytest.mark.parametrize("trials", [25, pytest.param(400, marks=pytest.mark.torture)])
def test_killing_waiters_loses_no_wake_up(path: Path, spawn: Spawn, trials: int) -> None:
    rnd = random.Random(trials)
    with Queue(path, sync="off") as queue:
        queue.stats()
        waiters = [spawn(_waiters.echo, path) for _ in range(4)]
        for waiter in waiters:
            assert waiter.line() == "ready"
        spares = [spawn(_waiters.echo, path) for _ in range(2)]
        delays: list[float] = []
        for _ in range(trials):
            wait_asleep(*(waiter.pid for waiter in waiters))
            start = time.monotonic()
            queue.put(start)
            victim = waiters.pop(rnd.randrange(len(waiters)))
            time.sleep(rnd.choice([0, 0, 50e-6, 100e-6, 200e-6]))
            victim.kill()
            queue.join(timeout=30)
            delays.append(time.monotonic() - start)
            waiters.append(spares.pop(0))
            assert waiters[-1].line() == "ready"
            spares.append(spawn(_waiters.echo, path))
        assert queue.stats()["done"] == trials
        assert max(delays) < 3 * BACKSTOP, delays
        assert statistics.median(delays) < 0.1, delays
        assert_sound(queue.store)


def test_waiters_that_died_asleep_block_no_producer(path: Path, spawn: Spawn) -> None:
    with Queue(path, sync="off") as queue:
        queue.stats()
        dead = [spawn(_waiters.wait, path, 600) for _ in range(8)]
        wait_asleep(*(waiter.pid for waiter in dead))
        for waiter in dead:
            waiter.kill()
        # More jobs than a pipe holds bytes, and nobody reads them.
        for _ in range(70):
            queue.put_many([0.0] * 1000)
        assert queue.purge("pending") == 70_000

        waiter = spawn(_waiters.echo, path)
        assert waiter.line() == "ready"
        wait_asleep(waiter.pid)
        queue.put(time.monotonic())
        assert float(waiter.line().split()[1]) < BACKSTOP


def test_a_delayed_job_is_claimed_within_20_ms_of_its_time(path: Path, spawn: Spawn) -> None:
    with Queue(path, sync="off") as queue:
        queue.stats()
        waiters = [spawn(_waiters.punctual, path) for _ in range(2)]
        for waiter in waiters:
            assert waiter.line() == "ready"
        late: list[float] = []
        for trial in range(9):
            wait_asleep(*(waiter.pid for waiter in waiters))
            due = time.time() + 0.1 + trial / 100
            queue.put(due, run_at=due)
            late.append(float(_first_line(waiters)))
        assert min(late) > -0.001, "a job was claimed before its time"
        assert statistics.median(late) < 0.02, late


def test_a_nack_with_a_delay_wakes_a_waiter_at_its_time(path: Path, spawn: Spawn) -> None:
    with Queue(path, sync="off") as queue:
        queue.put(time.time())
        record = queue.get_nowait()
        waiter = spawn(_waiters.punctual, path)
        assert waiter.line() == "ready"
        wait_asleep(waiter.pid)
        start = time.time()
        record.nack("later", delay=0.2)
        waiter.line()
        assert 0.199 < time.time() - start < BACKSTOP
