"""Workers and horses that are killed in mid-job: RQ's rule is applied, at once and only once."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from rq import Retry

import equeue_rq

from .._procs import wait_until
from .._watch import Gate, Watch, stopped
from ._application import Application
from ._commands import Command, Starter, kill_together

pytestmark = pytest.mark.once

FORKING = ["Worker", "SpawnWorker"]
"""Workers with a horse."""

CLASSES = [*FORKING, "SimpleWorker"]


def long_form(*values: Any) -> Any:
    """A variant that the short form leaves out."""
    return pytest.param(*values, marks=pytest.mark.torture)


SOME_FORKING = ["Worker", long_form("SpawnWorker")]
SOME = [*SOME_FORKING, "SimpleWorker"]
"""The same, with what makes a difference seldom in the long form only."""


def gone(pid: int) -> None:
    """Wait until a process that is nobody's child any longer has ended."""
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") or is_zombie(pid), f"{pid} has ended")


def is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("worker_class", ["", *SOME_FORKING])
def test_a_killed_horses_job_fails_once(
    application: Application, watch: Watch, start: Starter, worker_class: str
) -> None:
    worker = start(worker_class=worker_class).up()
    application.enqueue("hold", "job")
    (run,) = watch.wait("start", "job")
    os.kill(run.pid, signal.SIGKILL)
    application.wait("job", status="failed")
    assert "Work-horse terminated unexpectedly" in application.failure("job")
    worker.stop()
    assert len(watch.of("start")) == 1
    assert application.traces() == []


@pytest.mark.parametrize("worker_class", ["", *FORKING])
def test_a_killed_horses_job_is_retried_once(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    worker = start(worker_class=worker_class).up()
    application.enqueue("hold", "job", retry=Retry(max=2))
    (run,) = watch.wait("start", "job")
    os.kill(run.pid, signal.SIGKILL)
    watch.wait("start", "job", 2)
    gate.open()
    application.wait("job")
    worker.stop()
    assert [run.retries for run in watch.of("start", "job")] == [2, 1]
    assert len(watch.of("end", "job")) == 1
    assert application.traces() == []


def kill_worker_first(command: Command, horse: int) -> None:
    command.signal(signal.SIGKILL)
    if horse != command.pid:
        os.kill(horse, signal.SIGKILL)


def kill_horse_first(command: Command, horse: int) -> None:
    """The worker does not notice any more."""
    with stopped(command.pid):
        os.kill(horse, signal.SIGKILL)
        command.signal(signal.SIGKILL)


def kill_session(command: Command, horse: int) -> None:
    command.kill_session()


@pytest.mark.contract("RQW-03")
@pytest.mark.parametrize(
    ("worker_class", "kill"),
    [
        ("Worker", kill_worker_first),
        ("Worker", kill_horse_first),
        ("Worker", kill_session),
        ("SpawnWorker", kill_session),
        ("SimpleWorker", kill_session),
    ],
)
def test_a_killed_workers_job_is_abandoned_at_once(
    application: Application,
    watch: Watch,
    start: Starter,
    worker_class: str,
    kill: Callable[[Command, int], None],
) -> None:
    """By RQ's rule it is retried as long as it has retries left, and has failed then."""
    workers = [start(worker_class=worker_class) for _ in range(3)]
    observer = start("other")
    for worker in (*workers, observer):
        worker.up()
    application.enqueue("hold", "job", retry=Retry(max=2))
    delays = []
    for number in range(1, 4):
        runs = watch.wait("start", "job", number)
        (victim,) = [worker for worker in workers if worker.name == runs[-1].command]
        killed_at = time.monotonic()
        kill(victim, runs[-1].pid)
        if number == 3:
            delays.append(application.wait("job", status="failed") - killed_at)
        else:
            delays.append(watch.wait("start", "job", number + 1)[-1].at - killed_at)
    print(
        f"{worker_class}: {statistics.median(delays) * 1000:.0f} ms until the job is handled, "
        f"{max(delays) * 1000:.0f} at most"
    )
    assert "AbandonedJobError" in application.failure("job")
    wait_until(lambda: application.workers() == {observer.worker}, "the dead are forgotten")
    observer.stop()
    assert [run.retries for run in watch.of("start", "job")] == [2, 1, 0]
    assert watch.of("end") == []
    assert application.traces() == []


@pytest.mark.contract("RQW-05")
@pytest.mark.parametrize("worker_class", FORKING)
def test_a_horse_goes_on_without_its_worker(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    victim = start(worker_class=worker_class).up()
    application.enqueue("hold", "job", retry=Retry(max=2))
    (run,) = watch.wait("start", "job")
    observer = start().up()
    victim.signal(signal.SIGKILL)
    victim.ended()
    application.look()
    assert application.status("job") == "started"
    application.enqueue("mark", "other")
    application.wait("other")
    application.look()
    gate.open()
    application.wait("job")
    gone(run.pid)
    wait_until(lambda: application.workers() == {observer.worker}, "the dead are forgotten")
    observer.stop()
    assert len(watch.of("start", "job")) == len(watch.of("end", "job")) == 1
    assert application.job("job").retries_left == 2
    assert application.traces() == []


@pytest.mark.contract("RQW-07")
@pytest.mark.parametrize("worker_class", SOME)
def test_a_worker_of_the_same_name_starts_at_once(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    """RQ refuses for minutes."""
    victim = start(worker_class=worker_class, name="only").up()
    application.enqueue("hold", "job", retry=Retry(max=1))
    watch.wait("start", "job")
    victim.kill_session()
    again = start(worker_class=worker_class, name="only")
    watch.wait("start", "job", 2)
    gate.open()
    application.wait("job")
    again.stop()
    assert [run.retries for run in watch.of("start", "job")] == [1, 0]
    assert application.traces() == []


def test_a_worker_is_killed_as_the_next_one_of_its_name_starts(
    application: Application, watch: Watch, start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look for dead workers and the beginning of the new one's life."""
    victim = start(name="only").up()
    application.enqueue("hold", "job")
    watch.wait("start", "job")
    worker = equeue_rq.SimpleWorker("default", name="only", connection=application.connection)
    monkeypatch.setattr(worker, "bury_dead", lambda *place: victim.kill_session())
    worker.register_birth()
    assert "AbandonedJobError" in application.failure("job")
    assert application.workers() == {"only"}
    worker.register_death()
    assert application.traces() == []


@pytest.mark.contract("RQW-07")
def test_a_living_workers_name_is_refused(
    application: Application, watch: Watch, start: Starter
) -> None:
    first = start(name="only").up()
    assert start(name="only").ended() == 1
    application.enqueue("mark", "job")
    application.wait("job")
    first.stop()
    assert application.traces() == []


@pytest.mark.contract("RQW-03")
def test_many_that_look_do_not_do_it_twice(
    application: Application, watch: Watch, gate: Gate, other_gate: Gate, start: Starter
) -> None:
    """Several workers are killed at once, and several others see it; callbacks take their time."""
    other_gate.open()
    victims = [start() for _ in range(4)]
    jobs = [f"job-{number}" for number in range(len(victims))]
    for job in jobs:
        application.enqueue(
            "hold", job, retry=Retry(max=1), on_failure=application.callback("slow_on_failure")
        )
    watch.wait("start", count=len(jobs))
    observers = [start() for _ in range(4)]
    for observer in observers:
        observer.up()
    other_gate.shut()
    kill_together(victims)
    # Each callback holds up who does it, so each of them looks after one.
    watch.wait("callback", count=len(jobs))
    other_gate.open()
    watch.wait("start", count=2 * len(jobs))
    gate.open()
    application.wait(*jobs)
    for observer in observers:
        observer.stop()
    for job in jobs:
        assert [run.retries for run in watch.of("start", job)] == [1, 0]
        assert len(watch.of("callback", job)) == 1
    assert application.traces() == []
