"""Pools of workers, some of which are killed."""

from __future__ import annotations

import os
import signal

import pytest
from rq import Retry

from .._procs import wait_until
from .._watch import Gate, Watch
from ._application import Application
from ._commands import Starter

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("program", "worker_class"),
    [
        ("rq worker-pool", "Worker"),
        ("equeue_rq.WorkerPool", "Worker"),
        ("equeue_rq.WorkerPool", "SimpleWorker"),
    ],
)
def test_a_worker_of_a_pool_is_killed(
    application: Application,
    watch: Watch,
    gate: Gate,
    start: Starter,
    program: str,
    worker_class: str,
) -> None:
    """Its job goes to another, and the pool starts a new one."""
    options = {"module": "_pool"} if program == "equeue_rq.WorkerPool" else {}
    pool = start(processes=2, worker_class=worker_class, **options)
    wait_until(lambda: len(application.workers()) == 2, "the pool is there")
    before = application.workers()
    jobs = ["job-0", "job-1"]
    for job in jobs:
        application.enqueue("hold", job, retry=Retry(max=1))
    runs = watch.wait("start", count=2)
    job = application.job(runs[0].token)
    victim = int(application.connection.hget(f"rq:worker:{job.worker_name}", "pid") or 0)
    for pid in {victim, runs[0].pid}:
        os.kill(pid, signal.SIGKILL)
    watch.wait("start", runs[0].token, 2)
    gate.open()
    application.wait(*jobs)
    wait_until(
        lambda: len(application.workers()) == 2 and len(application.workers() - before) == 1,
        "there is a new one instead",
    )
    pool.stop()
    assert len(watch.of("start")) == 3
    assert application.traces() == []


def test_a_whole_pool_is_killed(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    """The next one has the jobs run again."""
    jobs = [f"job-{number}" for number in range(4)]
    for job in jobs:
        application.enqueue("hold", job, retry=Retry(max=1))
    pool = start(processes=2)
    watch.wait("start", count=2)
    pool.kill_session()
    again = start(processes=2)
    gate.open()
    application.wait(*jobs)
    again.stop()
    assert len(watch.of("start")) == 6
    assert {len(watch.of("end", job)) for job in jobs} == {1}
    assert application.traces() == []
