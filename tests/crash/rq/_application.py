"""The application whose jobs the workers run, and what can be told of its store."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from rq.job import Callback, Job

import equeue_rq
from equeue_rq import LMDBRedis
from equeue_rq import _lives as lives

from .._procs import wait_until

JOBS = f"{__name__.rpartition('.')[0]}._jobs"

_WORKER = "rq:worker:"
_TRACES = ("rq:wip:", "rq:workers", "rq:execution:")
_TRACE_ENDS = (":claim", ":intermediate", ":executions", ":abandoned")
"""What keys are there only while workers live or work."""


class Application:
    """Queues of a store in a test's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "store"
        self.connection = LMDBRedis(self.path, sync="off", decode_responses=False)

    def queue(self, name: str = "default", **options: Any) -> equeue_rq.Queue:
        return equeue_rq.Queue(name, connection=self.connection, **options)

    def enqueue(
        self, function: str, token: str, *arguments: Any, queue: str = "default", **options: Any
    ) -> Job:
        """Enqueue a call of a function of the jobs, as the job with this id."""
        return self.queue(queue).enqueue(f"{JOBS}.{function}", *arguments, job_id=token, **options)

    @staticmethod
    def callback(function: str) -> Callback:
        """A function of the jobs, to be called when something has become of a job."""
        return Callback(f"{JOBS}.{function}")

    def job(self, token: str) -> Job:
        return Job.fetch(token, connection=self.connection)

    def status(self, token: str) -> str:
        """The job's status; empty if there is no such job."""
        return (self.connection.hget(f"rq:job:{token}", "status") or b"").decode()

    def wait(self, *tokens: str, status: str = "finished") -> float:
        """Wait until all these jobs have a status; when that was, on the monotonic clock."""
        wait_until(
            lambda: all(self.status(token) == status for token in tokens),
            f"{tokens} {status}, not {[self.status(token) for token in tokens]}",
        )
        return time.monotonic()

    def failure(self, token: str) -> str:
        """Why a job failed. It is known as failed, once, and as nothing else."""
        assert self.status(token) == "failed"
        queue = self.queue(self.job(token).origin)
        assert token in queue.failed_job_registry.get_job_ids()
        assert token not in queue.finished_job_registry.get_job_ids()
        assert token not in queue.job_ids
        (result,) = self.job(token).results()
        return str(result.exc_string)

    # Workers

    def state(self, name: str) -> str:
        """What the worker of this name does, as RQ tells."""
        return (self.connection.hget(_WORKER + name, "state") or b"").decode()

    def workers(self) -> set[str]:
        """The names of the workers that are known as living."""
        return {
            key.decode().removeprefix(_WORKER) for key in self.connection.smembers("rq:workers")
        }

    def look(self) -> None:
        """Look for killed workers, as each worker does four times a second, and as it starts."""
        observer = equeue_rq.SimpleWorker("nothing", connection=self.connection)
        observer.register_birth()
        observer.register_death()

    # What is left in the end

    def traces(self) -> list[str]:
        """What is in the store only while workers live or work."""
        keys = [key.decode() for key in self.connection.scan_iter("rq:*", count=1000)]
        found = [key for key in keys if key.startswith(_TRACES) or key.endswith(_TRACE_ENDS)]
        directory = self.path / lives.DIRECTORY
        return sorted(found + (os.listdir(directory) if directory.exists() else []))

    def close(self) -> None:
        self.connection.close()
