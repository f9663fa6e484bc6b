"""Workers that are killed between taking a job and starting it: it is where it was."""

from __future__ import annotations

import signal

import pytest
from rq import Retry

from .._watch import Watch
from . import _dying as dying
from ._application import Application
from ._commands import Command, Starter
from .test_killed import SOME, long_form

pytestmark = pytest.mark.once

DYING = dying.__name__

POINTS = ["taken", "dequeued", "preparing", "prepared"]
"""Where the worker is alone with the job."""


def die(start: Starter, point: str, worker_class: str, *queues: str) -> Command:
    """Have a worker be killed at a point of its first job."""
    victim = start(
        *queues, worker_class=f"{DYING}.{worker_class}", environment={dying.POINT: point}
    )
    assert victim.ended() == -signal.SIGKILL
    victim.kill_session()
    return victim


ONE, TWO = ("default",), ("urgent", "default")


@pytest.mark.contract("RQW-04")
@pytest.mark.parametrize(
    ("worker_class", "points", "queues"),
    [
        ("Worker", [*POINTS, "forked", "starting"], ONE),
        ("Worker", [*POINTS, "forked", "starting"], TWO),
        ("SpawnWorker", ["forked", "starting"], TWO),
        ("SimpleWorker", ["prepared", "starting"], TWO),
        long_form("SpawnWorker", ["forked", "starting"], ONE),
        long_form("SimpleWorker", ["prepared", "starting"], ONE),
    ],
)
def test_a_job_that_was_not_started_is_back_at_the_head_of_its_queue(
    application: Application,
    watch: Watch,
    start: Starter,
    worker_class: str,
    points: list[str],
    queues: tuple[str, ...],
) -> None:
    jobs = ["first", "second", "third"]
    for job in jobs:
        application.enqueue("mark", job, retry=Retry(max=1))
    for point in points:
        die(start, point, worker_class, *queues)
        assert application.queue().job_ids == jobs[1:], point
        application.look()
        assert application.queue().job_ids == jobs, point
        assert application.traces() == [], point
    assert start("--burst").ended() == 0
    application.wait(*jobs)
    assert [(run.token, run.retries) for run in watch.of("start")] == [(job, 1) for job in jobs]
    assert application.traces() == []


@pytest.mark.parametrize("worker_class", SOME)
def test_a_job_that_was_started_is_abandoned(
    application: Application, watch: Watch, start: Starter, worker_class: str
) -> None:
    """Its function may have run."""
    application.enqueue("mark", "job", retry=Retry(max=1))
    die(start, "started", worker_class)
    assert application.queue().job_ids == []
    assert start("--burst").ended() == 0
    application.wait("job")
    assert [run.retries for run in watch.of("start")] == [0]
    assert application.traces() == []


@pytest.mark.parametrize("point", ["taken", "prepared"])
def test_a_job_that_was_cancelled_or_deleted_meanwhile_is_not_put_back(
    application: Application, watch: Watch, start: Starter, point: str
) -> None:
    for job in ("cancelled", "deleted"):
        application.enqueue("mark", job)
        die(start, point, "Worker")
        if job == "cancelled":
            application.job(job).cancel()
        else:
            application.job(job).delete()
        application.look()
        assert application.queue().job_ids == []
        assert application.traces() == []


@pytest.mark.parametrize("worker_class", ["Worker", "SpawnWorker"])
def test_a_horse_that_is_killed_before_it_starts_the_job_leaves_nothing_of_it(
    application: Application, watch: Watch, start: Starter, worker_class: str
) -> None:
    """RQ leaves the job in its intermediate queue, and fails it once more a minute later."""
    application.enqueue("mark", "job", retry=Retry(max=1))
    application.enqueue("mark", "next")
    worker = start(worker_class=f"{DYING}.{worker_class}", environment={dying.POINT: "horse"})
    application.wait("job", "next")
    worker.stop()
    assert [(run.token, run.retries) for run in watch.of("start")] == [("next", 0), ("job", 0)]
    assert application.traces() == []
