"""RQ's pool of workers, on a store."""

from __future__ import annotations

from typing import Any

import rq.worker_pool

from equeue_rq._paths import Location, accepts_paths, as_connection
from equeue_rq._workers import Worker


@accepts_paths
class WorkerPool(rq.worker_pool.WorkerPool):
    """``rq.worker_pool.WorkerPool``, which takes a store's path as ``connection``, and whose workers are
    `Worker` unless another class is given.

    Parameters:
        queues: the queues' names, or queues.
        connection: a store's path, its ``lmdb:`` URL, or a connection.
        num_workers: how many workers it runs.
        worker_class: their class.
        options: as for RQ's class.
    """

    def __init__(
        self,
        queues: Any,
        connection: Location,
        num_workers: int = 1,
        worker_class: Any = Worker,
        **options: Any,
    ) -> None:
        super().__init__(queues, as_connection(connection), num_workers, worker_class, **options)
