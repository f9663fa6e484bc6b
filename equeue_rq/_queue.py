"""RQ's jobs and queues, on a store: they take paths."""

from __future__ import annotations

import rq
import rq.job

from equeue_rq._paths import accepts_paths


@accepts_paths
class Job(rq.job.Job):
    """``rq.job.Job``, which takes a store's path where that takes a connection."""


@accepts_paths
class Queue(rq.Queue):
    """``rq.Queue``, which takes a store's path where that takes a connection."""

    job_class = Job
