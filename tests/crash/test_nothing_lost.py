"""Nothing is lost and nothing is done twice, however many work at it and whoever is killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue, State

from ._ledger import Journal, Story, assert_sound
from ._procs import Child
from ._torture import beginnings, drain, drive
from ._work import MANY, Worker

JOBS = 20_000


def test_each_of_20000_jobs_goes_to_exactly_one_of_32_threads(
    path: Path, spawn: Callable[..., Child]
) -> None:
    with Queue(path, sync="off") as queue:
        for first in range(0, JOBS, 1000):
            queue.put_many(range(first, first + 1000))
        children = [spawn(drain, path, 4) for _ in range(8)]
        for child in children:
            assert child.line() == "ready"
        for child in children:
            child.tell("go")
        got = [job_id for child in children for ids in json.loads(child.line()) for job_id in ids]

        assert len(got) == JOBS
        assert sorted(got) == list(range(1, JOBS + 1))
        assert queue.stats()["done"] == queue.stats()["total"] == JOBS
        assert_sound(queue.store)


@pytest.mark.parametrize("trials", [60, pytest.param(1000, marks=pytest.mark.torture)])
def test_making_a_store_under_sigkill(path: Path, spawn: Callable[..., Child], trials: int) -> None:
    log = path.with_name("journal")
    child = spawn(beginnings, path, log, trials)
    assert child.line(60 + trials) == "done"
    put = Story.read(log).put
    assert len(put) >= 2 * trials
    for trial in range(trials):
        with Queue(f"{path}.{trial}") as queue:
            expected = {token for token in put if token.startswith(f"{trial}.")}
            found = {job.payload for state in State for job in queue.jobs(state)}
            assert expected <= found
            assert_sound(queue.store)


def torture(path: Path, spawn: Callable[..., Child], sync: str, seconds: float, seed: int) -> int:
    """Work under fire, then a check of every line in the journal. Returns how many were killed."""
    log = path.with_name("journal")
    with Queue(path, sync=sync, max_retries=MANY, vacuum_interval=86400) as queue:
        queue.stats()
        driver = spawn(drive, path, log, seconds, seed)
        killed = int(driver.line(seconds + 60))
        driver.finish()

        assert_sound(queue.store)
        journal = Journal(log)
        Worker(queue, journal, "last").drain()
        journal.close()
        story = Story.read(log)
        assert len(story.acked) > 100, "hardly anything happened"
        story.check(queue)
        assert_sound(queue.store)
        return killed


@pytest.mark.parametrize(("sync", "seconds"), [("off", 7), ("full", 7)])
def test_work_under_sigkill(
    path: Path, spawn: Callable[..., Child], sync: str, seconds: float
) -> None:
    assert torture(path, spawn, sync, seconds, seed=1) > 20


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sync", ["off", "normal", "full"])
def test_work_under_sigkill_for_a_minute(
    path: Path, spawn: Callable[..., Child], sync: str, seed: int
) -> None:
    assert torture(path, spawn, sync, 60, seed) > 200
