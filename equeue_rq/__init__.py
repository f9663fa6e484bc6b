"""The RQ adapter of equeue: all of RQ on a directory, without a Redis server.

`LMDBRedis` is a ``redis.Redis`` whose commands run in this process, on an equeue store. An application
that says ``Queue(connection=Redis())`` says ``Queue(connection=LMDBRedis("./data"))``, and that is all.

`Queue`, `Job`, `Worker`, `SimpleWorker`, `SpawnWorker` and `WorkerPool` are RQ's own, and take a path where
RQ's take a connection. These workers also know from the kernel when another one was killed.
"""

from __future__ import annotations

from rq import get_current_job

from equeue_rq._paths import connect
from equeue_rq._pool import WorkerPool
from equeue_rq._queue import Job, Queue
from equeue_rq._workers import SimpleWorker, SpawnWorker, Worker
from equeue_rq.client import LMDBConnection, LMDBConnectionPool, LMDBRedis

__all__ = [
    "Job",
    "LMDBConnection",
    "LMDBConnectionPool",
    "LMDBRedis",
    "Queue",
    "SimpleWorker",
    "SpawnWorker",
    "Worker",
    "WorkerPool",
    "connect",
    "get_current_job",
]
