"""Workers that are killed at a point of their work with a job."""

from __future__ import annotations

import os
import signal
from typing import Any

import equeue_rq
from equeue_rq import LMDBRedis

POINT = "EQUEUE_TEST_POINT"  # an environment variable


class _Dying:
    """Kills itself, with its horse, where the environment says so; "horse": only the horses of jobs that will
    be retried, as they start."""

    def reached(self, point: str) -> None:
        if os.environ.get(POINT) == point:
            if self.is_horse:  # type: ignore[attr-defined]
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    def dequeue_job_and_maintain_ttl(self, *args: Any, **kwargs: Any) -> Any:
        taken = super().dequeue_job_and_maintain_ttl(*args, **kwargs)  # type: ignore[misc]
        if taken is not None:
            self.reached("dequeued")
        return taken

    def set_state(self, state: str, pipeline: Any = None) -> None:
        super().set_state(state, pipeline)  # type: ignore[misc]
        if state == "busy":
            self.reached("preparing")

    def prepare_execution(self, job: Any) -> Any:
        execution = super().prepare_execution(job)  # type: ignore[misc]
        self.reached("prepared")
        return execution

    def setup_work_horse_signals(self) -> None:
        super().setup_work_horse_signals()  # type: ignore[misc]
        self._is_horse = True
        self.reached("forked")

    def prepare_job_execution(self, job: Any, *args: Any, **kwargs: Any) -> None:
        if os.environ.get(POINT) == "horse" and job.retries_left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.reached("starting")
        super().prepare_job_execution(job, *args, **kwargs)  # type: ignore[misc]
        self.reached("started")

    def handle_job_failure(self, job: Any, *args: Any, **kwargs: Any) -> None:
        set_status = job.set_status

        def set_and_die(status: str, pipeline: Any = None) -> None:
            set_status(status, pipeline=pipeline)
            if status == "scheduled":
                self.reached("scheduling")

        job.set_status = set_and_die
        super().handle_job_failure(job, *args, **kwargs)  # type: ignore[misc]


class Worker(_Dying, equeue_rq.Worker): ...


class SpawnWorker(_Dying, equeue_rq.SpawnWorker): ...


class SimpleWorker(_Dying, equeue_rq.SimpleWorker): ...


_execute_command = LMDBRedis.execute_command


def execute_command(self: LMDBRedis, name: str, *args: Any, **options: Any) -> Any:
    found = _execute_command(self, name, *args, **options)
    is_claim = name.startswith("EQUEUE.") and found is not None
    if is_claim and os.environ.get(POINT) == "taken":
        os.kill(os.getpid(), signal.SIGKILL)
    return found


if POINT in os.environ:
    LMDBRedis.execute_command = execute_command  # type: ignore[method-assign]
