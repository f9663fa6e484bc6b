"""RQ's jobs and queues, on a store: they take paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rq
import rq.job
from redis import Redis
from rq.exceptions import DequeueTimeout

from equeue_rq import _claims as claims
from equeue_rq._paths import accepts_paths


@accepts_paths
class Job(rq.job.Job):
    """``rq.job.Job``, which takes a store's path where that takes a connection."""


@accepts_paths
class Queue(rq.Queue):
    """``rq.Queue``, which takes a store's path where that takes a connection."""

    job_class = Job

    @classmethod
    def lpop(
        cls, queue_keys: Sequence[str], timeout: int | None, connection: Redis | None = None
    ) -> Any:
        """The key of a queue, and the id of the job that is taken off it; None: there is none.

        Parameters:
            timeout: seconds to wait for one; None: not at all.

        Raises:
            rq.exceptions.DequeueTimeout: there was none in time.
        """
        if not claims.is_claiming() or connection is None or timeout == 0:
            return super().lpop(queue_keys, timeout, connection=connection)
        taken = claims.take(connection, queue_keys, timeout)
        if taken is None and timeout is not None:
            raise DequeueTimeout(timeout, queue_keys)
        return taken

    @classmethod
    def lmove(cls, connection: Redis, queue_key: str, timeout: int | None) -> Any:
        """The same, of one queue."""
        if not claims.is_claiming() or timeout == 0:
            return super().lmove(connection, queue_key, timeout)
        return cls.lpop([queue_key], timeout, connection=connection)
