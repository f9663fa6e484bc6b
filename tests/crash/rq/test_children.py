"""What jobs and workers leave behind does not hide that a worker is dead."""

from __future__ import annotations

import os
import signal

import pytest
from rq import Retry

from .._procs import wait_until
from .._watch import Gate, Watch
from ._application import Application
from ._commands import Starter
from .test_killed import CLASSES, is_zombie, long_form

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("worker_class", "function"),
    [
        *((each, "daemonize") for each in CLASSES),
        ("SpawnWorker", "run_command"),
        long_form("Worker", "run_command"),
        long_form("SimpleWorker", "run_command"),
    ],
)
def test_a_jobs_children_are_not_its_worker(
    application: Application,
    watch: Watch,
    gate: Gate,
    other_gate: Gate,
    start: Starter,
    worker_class: str,
    function: str,
) -> None:
    worker = start(worker_class=worker_class).up()
    application.enqueue(function, "job")
    watch.wait("child", "job")
    (child,) = {event.pid for event in watch.of("child")} - {0}
    observer = start().up()
    worker.kill_session()
    application.wait("job", status="failed")
    assert "AbandonedJobError" in application.failure("job")
    if function == "daemonize":
        assert not is_zombie(child), "it went on all the time"
    observer.stop()
    assert application.traces() == []


@pytest.mark.parametrize(
    "worker_class", ["Worker", long_form("SpawnWorker"), long_form("SimpleWorker")]
)
def test_the_scheduler_of_a_killed_worker_does_not_count_as_the_worker(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    """It goes on, and so does scheduling."""
    worker = start("--with-scheduler", worker_class=worker_class).up()
    application.enqueue("hold", "job", retry=Retry(max=1))
    (run,) = watch.wait("start", "job")
    (key,) = application.connection.keys("rq:scheduler:*")
    scheduler = int(application.connection.hget(key, "pid") or 0)
    observer = start().up()
    worker.signal(signal.SIGKILL)
    if run.pid != worker.pid:
        os.kill(run.pid, signal.SIGKILL)
    watch.wait("start", "job", 2)
    assert not is_zombie(scheduler)
    gate.open()
    application.wait("job")
    wait_until(lambda: application.workers() == {observer.worker}, "it is forgotten")
    observer.stop()
    assert application.traces() == []
