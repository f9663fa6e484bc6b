"""What is done for a worker that is gone: its job goes to where it belongs, and its entries go."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from rq.executions import Execution, ExecutionRegistry
from rq.intermediate_queue import IntermediateQueue
from rq.job import JobStatus
from rq.registry import StartedJobRegistry
from rq.timeouts import TimerDeathPenalty
from rq.utils import as_text

from equeue_core.storage import wall
from equeue_rq import _claims as claims
from equeue_rq import _lives as lives

if TYPE_CHECKING:
    from rq.job import Job
    from rq.queue import Queue
    from rq.worker import BaseWorker

    from equeue_rq._claims import Claim

_log = logging.getLogger(__name__)
_clock = time.monotonic  # a reference of our own: tests of applications patch it

_PAST = 1
"""The score of an execution that has expired."""

_AGAIN = 5.0
"""Seconds until a worker tries again what it could not do."""

_LEFT = 30.0
"""Seconds that a running execution has left when somebody else sees to it that it stays. Whose worker works
as it should has 60 or more.
"""

_MORE = 90
"""Seconds that it gets: as many as RQ's worker gives it."""

_DROPPED = ("", JobStatus.CANCELED, JobStatus.STOPPED)
"""The status of a job that is not to run any more; the first one: it was deleted."""

_RAN = (JobStatus.STARTED, JobStatus.SCHEDULED)
"""The status of a job whose execution has begun and not ended. RQ says in a commit of its own that a job
will be retried later: who is killed right afterwards leaves it as scheduled, and in no registry for that.
"""


def bury_dead(worker: BaseWorker, store: str, db: int, later: dict[str, float]) -> None:
    """Look after each worker of this store that is dead. What cannot be done now is left to a later look.

    Parameters:
        worker: who does it.
        store: the store's directory.
        db: the number of the database.
        later: what this worker could not do, and when it tries again; it is noted here.
    """
    for life in lives.dead(store, db, worker.redis_worker_namespace_prefix):
        if later.get(life.key, 0) > _clock():
            continue
        later[life.key] = _clock() + _AGAIN
        if bury(worker, life.key):
            life.end()
            del later[life.key]


def bury(worker: BaseWorker, key: str) -> bool:
    """Look after a dead worker, whose life is held; whether that is done."""
    worker.log.warning("Worker %s: %s was killed", worker.name, key)
    try:
        return _bury(worker, key)
    except Exception:
        worker.log.exception("Worker %s: looking after %s failed", worker.name, key)
        return False


def _bury(worker: BaseWorker, key: str) -> bool:
    job = _Taken.by(worker, key)
    if job is not None and not job.put_back() and not job.abandon():
        return False
    worker.connection.delete(claims.key_of(key))
    gone = type(worker).find_by_key(
        key,
        connection=worker.connection,
        job_class=worker.job_class,
        queue_class=worker.queue_class,
        serializer=worker.serializer,
    )
    if gone is not None:
        gone.register_death()
    return True


def keep_running(worker: BaseWorker, store: str, db: int) -> None:
    """Keep the jobs of living workers from being abandoned for want of a heartbeat.

    Nobody sends it if only the worker was killed, and its horse goes on; if the worker was stopped, or is
    a `SimpleWorker` in a job without a timeout.

    Parameters:
        worker, store, db: as for `bury_dead`.
    """
    for key in lives.living(store, db, worker.redis_worker_namespace_prefix):
        job = _Taken.by(worker, key)
        if job is not None:
            job.prolong()


def put_back(worker: BaseWorker) -> None:
    """Put back what the worker itself has taken and not started."""
    job = _Taken.by(worker, worker.key)
    if job is not None:
        job.put_back()


def has_started(worker: BaseWorker) -> bool:
    """Whether the worker has a job that was started, and has not ended."""
    job = _Taken.by(worker, worker.key)
    return job is not None and job.is_listed()


class _Taken:
    """A job that a worker has taken, or had taken last.

    Parameters:
        worker: who looks after it.
        key: the key of the worker that has taken it.
        claim: the note of that.
    """

    def __init__(self, worker: BaseWorker, key: str, claim: Claim) -> None:
        self._worker = worker
        self._connection = worker.connection
        self._key = key
        self._claim = claim
        # It is not fetched: its arguments and its meta data may be for others to read.
        self._job_key = worker.job_class.key_for(claim.job_id)
        self._queue = worker.queue_class.from_queue_key(
            claim.queue_key,
            connection=worker.connection,
            job_class=worker.job_class,
            serializer=worker.serializer,
        )
        self._registry = StartedJobRegistry(queue=self._queue)
        self._execution: Execution | None = None
        if claim.execution_id is not None:
            self._execution = Execution(claim.execution_id, claim.job_id, worker.connection)
            self._execution.worker_name = key[len(worker.redis_worker_namespace_prefix) :]

    @classmethod
    def by(cls, worker: BaseWorker, key: str) -> _Taken | None:
        """What the worker with this key has taken, or had taken last; None: nothing."""
        claim = claims.read(worker.connection, key)
        return None if claim is None else cls(worker, key, claim)

    def is_listed(self) -> bool:
        """Whether it has an execution that is known as running."""
        return self._expiry(self._connection) is not None

    def _expiry(self, connection: Any) -> float | None:
        """When its execution expires, as far as that is known as running."""
        if self._execution is None:
            return None
        expiry: float | None = connection.zscore(self._registry.key, self._execution.composite_key)
        return expiry

    def _status(self, connection: Any) -> str:
        return str(as_text(connection.hget(self._job_key, "status") or ""))

    def put_back(self) -> bool:
        """If it was not started, put it at the head of its queue; whether that was so."""
        note = claims.key_of(self._key)
        intermediate = IntermediateQueue(self._claim.queue_key, self._connection)
        held = intermediate.key

        def put(pipeline: Any) -> Any:
            # It is there from the transaction that takes it until it is started, or somebody else acts.
            is_held = pipeline.exists(note) and (
                pipeline.lpos(held, self._claim.job_id) is not None
            )
            is_listed = self._execution is None or self._expiry(pipeline) is not None
            is_wanted = self._status(pipeline) not in _DROPPED
            pipeline.multi()
            if not is_held or (is_wanted and not is_listed):
                return False
            pipeline.lrem(held, 1, self._claim.job_id)
            # RQ fails a job that is there a minute after it was first seen there.
            pipeline.delete(intermediate.get_first_seen_key(self._claim.job_id))
            if is_wanted:
                pipeline.lpush(self._claim.queue_key, self._claim.job_id)
            self._forget_execution(pipeline)
            pipeline.delete(note)
            return True

        transaction: Any = self._connection.transaction
        watched = self._job_key, self._registry.key, held, note
        return bool(transaction(put, *watched, value_from_callable=True))

    def abandon(self) -> bool:
        """Have RQ's rule for abandoned jobs applied now, not only when the heartbeat has run out.

        The execution is moved to a registry of its own first. RQ looks at all that have expired, so whoever
        looks at the same time, another observer or RQ's maintenance, would do the same once more.

        Returns:
            Whether that is done; if not, RQ's maintenance may be about to do it.
        """
        worker = self._worker
        # Callbacks of jobs run in a thread that is not the main one: without signals, that is.
        abandoned = StartedJobRegistry(
            queue=self._queue,
            job_class=_forgiving(worker.job_class),
            death_penalty_class=TimerDeathPenalty,
        )
        abandoned.key = f"{self._key}:abandoned"

        def take(pipeline: Any) -> None:
            is_listed, status = self._expiry(pipeline) is not None, self._status(pipeline)
            pipeline.multi()
            if not is_listed or self._execution is None:
                return
            self._forget_execution(pipeline)
            if status in _RAN:
                pipeline.hset(self._job_key, "status", JobStatus.STARTED)
                pipeline.zadd(abandoned.key, {self._execution.composite_key: _PAST})

        expiry = self._expiry(self._connection)
        with _maintaining(self._queue, expiry is not None and expiry <= wall()) as may:
            if not may:
                return False
            self._connection.transaction(take, self._registry.key, self._job_key)
        abandoned.cleanup(exception_handlers=[_guarded(each) for each in worker._exc_handlers])
        return True

    def prolong(self) -> None:
        """Send a heartbeat for its execution, if that is about to expire."""

        def beat(pipeline: Any) -> None:
            is_late = self._is_late(pipeline)
            pipeline.multi()
            if is_late and self._execution is not None:
                self._execution.heartbeat(self._registry, _MORE, pipeline)

        if self._is_late(self._connection):
            self._connection.transaction(beat, self._registry.key)

    def _is_late(self, connection: Any) -> bool:
        """Whether its execution is about to expire."""
        expiry = self._expiry(connection)
        return expiry is not None and expiry < wall() + _LEFT

    def _forget_execution(self, pipeline: Any) -> None:
        """Delete the execution, whether or not its job is there."""
        if self._execution is not None:
            pipeline.delete(self._execution.key)
            pipeline.zrem(self._registry.key, self._execution.composite_key)
            registry = ExecutionRegistry(self._execution.job_id, pipeline)
            registry.remove(self._execution, pipeline)


@contextmanager
def _maintaining(queue: Queue, may_meet: bool) -> Iterator[bool]:
    """Whether to go on.

    Parameters:
        may_meet: RQ's maintenance of this queue, in whatever process, could be doing the same.
    """
    if not may_meet:
        yield True
    elif queue.acquire_maintenance_lock():
        try:
            yield True
        finally:
            queue.release_maintenance_lock()
    else:
        yield False


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same callback or exception handler, which keeps no job from being looked after by raising."""

    def call(job: Job, *args: Any) -> Any:
        try:
            return function(job, *args)
        except (Exception, SystemExit):  # noqa: BLE001 - the application's
            _log.exception("Job %s: %r failed", job.id, function)
            return None

    return call


def _forgiving(job_class: type[Job]) -> type[Job]:
    """A class of jobs whose failure callbacks may raise, or be missing here."""

    class Forgiving(job_class):  # type: ignore[misc, valid-type]
        @property
        def failure_callback(self) -> Callable[..., Any] | None:
            try:
                callback: Callable[..., Any] | None = super().failure_callback
            except Exception:  # noqa: BLE001 - the application's
                _log.exception("Job %s: no failure callback", self.id)
                return None
            # RQ refuses coroutine functions.
            if callback is None or iscoroutinefunction(callback):
                return callback
            return _guarded(callback)

    return Forgiving
