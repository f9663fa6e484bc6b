"""Workers that are told to end, in time or at once."""

from __future__ import annotations

import os
import signal
import time

import pytest
from rq import Retry

from .._procs import wait_until
from .._watch import Gate, Watch
from ._application import Application
from ._commands import Command, Starter
from .test_killed import SOME

pytestmark = pytest.mark.once

DEAF = 1.05
"""Seconds in which RQ does not listen to a second signal, and a little more."""


def stop_at_once(command: Command, at: Gate | None = None) -> None:
    """A cold shutdown: two signals, of which RQ ignores the second if it comes too soon."""
    command.signal(signal.SIGTERM)
    wait_until(lambda: "warm shut down requested" in command.log(), "it heard the first")
    heard_at = time.monotonic()
    wait_until(lambda: time.monotonic() > heard_at + DEAF, "it would hear the second")
    command.signal(signal.SIGTERM)


@pytest.mark.parametrize("worker_class", ["", *SOME])
def test_an_idle_worker_ends_at_once(
    application: Application, start: Starter, worker_class: str
) -> None:
    worker = start(worker_class=worker_class).up()
    worker.stop()
    assert application.traces() == []


@pytest.mark.contract("RQW-08")
@pytest.mark.parametrize("worker_class", ["", *SOME])
def test_a_warm_shutdown_waits_for_the_job(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    worker = start(worker_class=worker_class).up()
    application.enqueue("hold", "job", retry=Retry(max=1))
    application.enqueue("mark", "next")
    watch.wait("start", "job")
    worker.signal(signal.SIGTERM)
    wait_until(lambda: "warm shut down requested" in worker.log(), "it heard")
    gate.open()
    assert worker.ended() == 0
    assert application.status("job") == "finished"
    assert application.queue().job_ids == ["next"]
    assert len(watch.of("start")) == 1
    assert application.traces() == []


@pytest.mark.contract("RQW-08")
@pytest.mark.parametrize("worker_class", ["Worker", "SpawnWorker"])
def test_a_cold_shutdown_gives_the_job_to_another_worker(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    """By RQ's rule for abandoned jobs; RQ itself waits until the heartbeat has run out."""
    worker = start(worker_class=worker_class).up()
    application.enqueue("hold", "job", retry=Retry(max=1))
    watch.wait("start", "job")
    observer = start().up()
    stop_at_once(worker)
    watch.wait("start", "job", 2)
    gate.open()
    application.wait("job")
    worker.ended()
    wait_until(lambda: application.workers() == {observer.worker}, "it is forgotten")
    observer.stop()
    assert [run.retries for run in watch.of("start", "job")] == [1, 0]
    assert application.traces() == []


def test_after_a_cold_shutdown_the_next_worker_finds_the_job(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    worker = start().up()
    application.enqueue("hold", "job")
    watch.wait("start", "job")
    stop_at_once(worker)
    worker.ended()
    assert application.workers() == set()
    assert application.status("job") == "started"
    start().up().stop()
    assert "AbandonedJobError" in application.failure("job")
    assert len(watch.of("start")) == 1
    assert application.traces() == []


def test_a_cold_shutdown_of_a_worker_without_horse_fails_the_job(
    application: Application, watch: Watch, start: Starter
) -> None:
    """The job sees the exception with which RQ ends the process, as it does on Redis."""
    worker = start(worker_class="SimpleWorker").up()
    application.enqueue("nap", "job", 60)
    watch.wait("start", "job")
    stop_at_once(worker)
    assert worker.ended() == 0
    assert "SystemExit" in application.failure("job")
    assert application.traces() == []


def test_signals_at_any_time_leave_no_job_behind(
    application: Application, watch: Watch, start: Starter
) -> None:
    """Each worker is stopped as it takes jobs, runs them, or has run them."""
    jobs = [f"job-{number}" for number in range(18)]
    left = list(jobs)
    rounds = 0
    while left:
        for job in left[:3]:
            application.enqueue("mark", job)
        del left[:3]
        worker = start(worker_class=["Worker", "SimpleWorker"][rounds % 2])
        wait_until(lambda worker=worker: bool(application.state(worker.worker)), "it is there")
        number = [signal.SIGTERM, signal.SIGINT][rounds // 2 % 2]
        os.kill(worker.pid, number)
        worker.ended(again=number)
        rounds += 1
    application.look()  # for one whom the signal killed, as it did not listen yet
    assert application.traces() == []
    assert start("--burst").ended() == 0
    application.wait(*jobs)
    assert sorted(run.token for run in watch.of("start")) == sorted(jobs)
    assert application.traces() == []
