"""RQ's workers, on a store: they take paths, and look after workers that were killed."""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import rq
import rq.job
import rq.worker
from rq.intermediate_queue import IntermediateQueue

from equeue_rq import _burial as burial
from equeue_rq import _claims as claims
from equeue_rq import _lives as lives
from equeue_rq._connection import LMDBConnection
from equeue_rq._paths import accepts_paths

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import Pipeline
    from rq.executions import Execution

    from equeue_rq._paths import Location

    Base = rq.Worker
else:
    Base = object

_intermediate = IntermediateQueue.get_intermediate_queue_key
_clock = time.monotonic  # a reference of our own: tests of applications patch it

LOOK_EVERY = 0.25
"""Seconds between two looks for workers that were killed."""

KEEP_EVERY = 10.0
"""Seconds between two looks for jobs that run and get no heartbeat."""


class _Watching(Base):
    """What is added to RQ's workers.

    On a connection to something else than a store of this machine, nothing is.
    """

    _life: lives.Life | None = None
    _preparing = False
    _starting: str | None = None
    _taken_from: str | None = None
    _started: str | None = None
    _unburied: dict[str, float] | None = None
    _watcher: _Watcher | None = None

    if TYPE_CHECKING:  # what `accepts_paths` makes of it

        def __init__(
            self,
            queues: Any,
            name: str | None = None,
            *args: Any,
            connection: Location | None = None,
            **options: Any,
        ) -> None: ...

    # Its life

    def register_birth(self) -> None:
        """Look after who was killed before, perhaps a worker of the same name; then tell of this one.

        Raises:
            ValueError: a worker of this name lives.
        """
        store = _store_of(self.connection)
        if store is not None:
            self.bury_dead(*store)
            self._life = lives.begin(*store, self.key)
        is_looked_after = True
        try:
            # One of the same name may have been killed since the look, or who looked after it.
            if self._life is not None and self._life.has_forerunner:
                is_looked_after = False
                is_looked_after = burial.bury(self, self.key)
            super().register_birth()  # type: ignore[no-untyped-call]
        except BaseException:
            if self._life is not None:
                self._life.end(mourned=is_looked_after)
            raise
        if store is not None and self._life is None:
            self.log.warning("Worker %s: nobody will know at once if it is killed", self.name)

    def register_death(self) -> None:
        """Tell that it ends. A job that was started and has not ended, as after a cold shutdown, is left to
        who looks for killed workers.
        """
        life, self._life = self._life, None
        if life is None:
            super().register_death()  # type: ignore[no-untyped-call]
            return
        unfinished = burial.has_started(self)
        if not unfinished:
            self.connection.delete(claims.key_of(self.key))
        super().register_death()  # type: ignore[no-untyped-call]
        life.end(mourned=not unfinished)

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

    def bury_dead(self, store: str, db: int) -> None:
        """Look after workers that were killed.

        Parameters:
            store: the store's directory.
            db: the number of the database.
        """
        if self._unburied is None:
            self._unburied = {}
        burial.bury_dead(self, store, db, self._unburied)

    # What it has in hand

    def dequeue_job_and_maintain_ttl(self, *args: Any, **kwargs: Any) -> Any:
        """The next job and its queue, which the worker has in hand from then on; None: there is none."""
        if self._life is None:
            return super().dequeue_job_and_maintain_ttl(*args, **kwargs)
        usual = self.queue_class
        self.queue_class = claims.claiming(usual, self.key)
        try:
            return super().dequeue_job_and_maintain_ttl(*args, **kwargs)
        except BaseException:  # a signal to stop, say, as a job came
            burial.put_back(self)
            raise
        finally:
            self.queue_class = usual

    def execute_job(self, job: rq.job.Job, queue: rq.Queue) -> None:
        """Run a job."""
        self._taken_from = queue.key
        try:
            super().execute_job(job, queue)
        except BaseException:
            if self._life is not None:
                burial.put_back(self)
            raise

    def prepare_execution(self, job: rq.job.Job) -> Execution:
        """Make the job's execution, which the worker has in hand from then on."""
        self._preparing = self._life is not None
        try:
            return super().prepare_execution(job)
        finally:
            self._preparing = False

    def set_state(self, state: str, pipeline: Pipeline | None = None) -> None:
        """Show what it does. In the transaction that makes an execution, that is noted as in hand."""
        super().set_state(state, pipeline)
        if self._preparing and pipeline is not None and self.execution is not None:
            claims.note_execution(pipeline, self.key, self.execution.id)

    def prepare_job_execution(self, job: rq.job.Job, *args: Any, **kwargs: Any) -> None:
        """Make the job known as started."""
        self._starting = job.id
        try:
            super().prepare_job_execution(job, *args, **kwargs)
        finally:
            self._starting = None
        self._started = job.id

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Tell that it lives. In the transaction that makes a job known as started, the job leaves the
        intermediate queue: RQ sees to that for a worker of one queue only.
        """
        super().heartbeat(timeout, pipeline)
        if self._starting and pipeline is not None and self._taken_from:
            pipeline.lrem(_intermediate(self._taken_from), 1, self._starting)

    def cleanup_execution(
        self, job: rq.job.Job, pipeline: Pipeline, *args: Any, **kwargs: Any
    ) -> None:
        """Delete a job's execution, and what stands for it if it was killed before it had started."""
        super().cleanup_execution(job, pipeline, *args, **kwargs)
        if self._taken_from and self._started != job.id:
            pipeline.lrem(_intermediate(self._taken_from), 1, job.id)

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
        self._taken_from = queue.key
        super().main_work_horse(job, queue)


class _Watcher(threading.Thread):
    """Looks for killed workers, and after jobs that get no heartbeat, as long as its own worker is there."""

    def __init__(self, worker: _Watching, store: str, db: int) -> None:
        super().__init__(name="equeue: killed workers", daemon=True)
        self._worker = weakref.ref(worker)
        self._store = store, db
        self._ended = threading.Event()
        self._keep_at = 0.0

    def run(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            worker = self._worker()
            if worker is None:
                return
            try:
                worker.bury_dead(*self._store)
                if _clock() >= self._keep_at:
                    self._keep_at = _clock() + KEEP_EVERY
                    burial.keep_running(worker, *self._store)
            except BaseException:
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
    if not issubclass(pool.connection_class, LMDBConnection):
        return None
    # It is not opened.
    made = pool.connection_class(**pool.connection_kwargs)
    return made.address.path, made.db


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
