"""RQ's workers, on a store: they take paths, and look after workers that were killed."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import rq
import rq.job
import rq.worker
from rq.worker import WorkerStatus

from equeue_rq import _burial as burial
from equeue_rq import _claims as claims
from equeue_rq import _lives as lives
from equeue_rq._address import Address
from equeue_rq._connection import LMDBConnection
from equeue_rq._paths import accepts_paths
from equeue_rq._queue import Queue

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline
    from rq.executions import Execution

    Base = rq.Worker
else:
    Base = object

LOOK_EVERY = 0.25
"""Seconds between two looks for workers that were killed."""


class _Watching(Base):
    """What is added to RQ's workers.

    On a connection to something else than a store of this machine, nothing is.
    """

    _life: lives.Life | None = None
    _preparing: rq.job.Job | None = None
    _watcher: _Watcher | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("queue_class") in (None, rq.Queue, "rq.Queue", "rq.queue.Queue"):
            kwargs["queue_class"] = Queue
        super().__init__(*args, **kwargs)

    def validate_queues(self) -> None:
        """Refuse what is no queue.

        Raises:
            TypeError: one of them is none.
        """
        if self.queue_class is not Queue:
            super().validate_queues()  # type: ignore[no-untyped-call]
            return
        for queue in self.queues:
            if not isinstance(queue, rq.Queue):
                raise TypeError(f"{queue} is neither a queue nor the name of one")

    # Its life

    def register_birth(self) -> None:
        """Look after who was killed before, perhaps a worker of the same name; then tell of this one.

        Raises:
            ValueError: a worker of this name lives.
        """
        store = _store_of(self.connection)
        if store is not None:
            burial.bury_dead(self, *store)
            self._life = lives.begin(*store, self.key)
        try:
            super().register_birth()  # type: ignore[no-untyped-call]
        except BaseException:
            if self._life is not None:
                self._life.end()
            raise

    def register_death(self) -> None:
        """Tell that it ends. A job that it has taken and not started goes back to where it was."""
        if self._life is None:
            super().register_death()  # type: ignore[no-untyped-call]
            return
        claim = claims.read(self.connection, self.key)
        if claim is not None:
            burial.put_back(self, self.key, claim)
        # What was started and has not ended, as by a cold shutdown, another worker looks after.
        unfinished = burial.has_started(self, self.key)
        if not unfinished:
            self.connection.delete(claims.key_of(self.key))
        super().register_death()  # type: ignore[no-untyped-call]
        self._life.end(mourned=not unfinished)
        self._life = None

    def subscribe(self) -> None:
        """Listen to commands, and look for killed workers, both in threads."""
        super().subscribe()  # type: ignore[no-untyped-call]
        store = _store_of(self.connection)
        if store is not None:
            self._watcher = _Watcher(self, *store)
            self._watcher.start()

    def unsubscribe(self) -> None:
        """Listen and look no longer."""
        if self._watcher is not None:
            self._watcher.stop()
        super().unsubscribe()  # type: ignore[no-untyped-call]

    # What it has in hand

    def dequeue_job_and_maintain_ttl(self, *args: Any, **kwargs: Any) -> Any:
        """The next job and its queue, which the worker has in hand from then on; None: there is none."""
        if _store_of(self.connection) is None:
            return super().dequeue_job_and_maintain_ttl(*args, **kwargs)
        with claims.claiming(self.key):
            return super().dequeue_job_and_maintain_ttl(*args, **kwargs)

    def prepare_execution(self, job: rq.job.Job) -> Execution:
        """Make the job's execution, which the worker has in hand from then on."""
        self._preparing = job
        try:
            return super().prepare_execution(job)
        finally:
            self._preparing = None

    def set_state(self, state: str, pipeline: Pipeline | None = None) -> None:
        """Show what it does. In the transaction that makes an execution, it is noted as in hand."""
        super().set_state(state, pipeline)
        job, execution = self._preparing, self.execution if self._preparing else None
        if job is None or execution is None or pipeline is None or state != WorkerStatus.BUSY:
            return
        queue_key = rq.Queue.redis_queue_namespace_prefix + job.origin
        claims.note_execution(pipeline, self.key, queue_key, job.id, execution.id)

    def prepare_job_execution(
        self, job: rq.job.Job, remove_from_intermediate_queue: bool = False
    ) -> None:
        """Make the job known as started. What is claimed was in the intermediate queue, of whatever queue."""
        super().prepare_job_execution(job, remove_from_intermediate_queue=True)

    # The horse

    def fork_work_horse(self, job: rq.job.Job, queue: rq.Queue) -> None:
        """Start the horse, which shares the worker's life."""
        life = self._life
        if life is None:
            super().fork_work_horse(job, queue)
        elif isinstance(self, _Spawning):
            with life.shared_with_spawned():
                super().fork_work_horse(job, queue)
        else:
            with life.shared_with_fork():
                super().fork_work_horse(job, queue)

    def main_work_horse(self, job: rq.job.Job, queue: rq.Queue) -> None:
        """Run the job, and end the process."""
        lives.keep_from_children()
        super().main_work_horse(job, queue)


class _Watcher(threading.Thread):
    """Looks for killed workers as long as its own worker is there."""

    def __init__(self, worker: _Watching, store: str, db: int) -> None:
        super().__init__(name="equeue: killed workers", daemon=True)
        self._worker = weakref.ref(worker)
        self._store = store, db
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            worker = self._worker()
            if worker is None:
                return
            try:
                burial.bury_dead(worker, *self._store)
            except Exception:
                worker.log.exception("Worker %s: looking for killed workers failed", worker.name)
            del worker

    def stop(self) -> None:
        """Have it end, after what it is about to do."""
        self._ended.set()
        if self.is_alive():
            self.join()


def _store_of(connection: Redis) -> tuple[str, int] | None:
    """Directory and database of a connection to a store; None: it leads elsewhere."""
    pool = connection.connection_pool
    address = pool.connection_kwargs.get("connection_pool")
    if isinstance(address, Address) and issubclass(pool.connection_class, LMDBConnection):
        return address.path, pool.connection_kwargs.get("db", 0)
    return None


@accepts_paths
class Worker(_Watching, rq.Worker):
    """``rq.Worker``, which runs each job in a process that it forks.

    It takes a store's path as ``connection``. It knows within a second if another worker of this store was
    killed: a job that had been started is abandoned, by RQ's own rule, so it is retried if it has retries
    left and failed if not; one that had not been started goes back to the head of its queue.
    """


@accepts_paths
class SimpleWorker(_Watching, rq.SimpleWorker):
    """``rq.SimpleWorker``, which runs jobs in its own process. For the rest see `Worker`."""


if hasattr(rq.worker, "SpawnWorker"):
    _Spawning = rq.worker.SpawnWorker
else:  # RQ before 2.2

    class _Spawning(rq.Worker):  # type: ignore[no-redef]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise NotImplementedError(
                f"RQ {rq.__version__} has no SpawnWorker: install a newer one, or use Worker"
            )


@accepts_paths
class SpawnWorker(_Watching, _Spawning):
    """``rq.SpawnWorker``, which runs each job in a process that it spawns. For the rest see `Worker`."""
