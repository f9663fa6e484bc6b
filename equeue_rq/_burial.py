"""What is done for a worker that is gone: its job goes to where it belongs, and its entries go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError
from rq.exceptions import NoSuchJobError
from rq.executions import Execution
from rq.job import JobStatus
from rq.registry import StartedJobRegistry
from rq.timeouts import TimerDeathPenalty
from rq.utils import as_text

from equeue_rq import _claims as claims
from equeue_rq import _lives as lives
from equeue_rq._claims import Claim

if TYPE_CHECKING:
    from rq.job import Job
    from rq.queue import Queue
    from rq.worker import BaseWorker

_PAST = 1
"""The score of an execution that has expired."""


def bury_dead(worker: BaseWorker, store: str, db: int) -> None:
    """Look after each worker of this machine that is dead. What cannot be done now is left to the next look.

    Parameters:
        worker: who does it.
        store: the store's directory.
        db: the number of the database.
    """
    for life in lives.dead(store, db, worker.redis_worker_namespace_prefix):
        worker.log.warning("Worker %s: worker %s was killed", worker.name, life.key)
        try:
            _bury(worker, life.key)
        except RedisError:
            worker.log.exception("Worker %s: looking after %s failed", worker.name, life.key)
        else:
            life.end()


def _bury(worker: BaseWorker, key: str) -> None:
    claim = claims.read(worker.connection, key)
    if claim is not None and not put_back(worker, key, claim):
        _abandon(worker, claim)
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


def put_back(worker: BaseWorker, key: str, claim: Claim) -> bool:
    """Put a job that was taken and not started at the head of its queue; whether that was to be done.

    Parameters:
        key: the key of the worker that took it, and runs no longer.
    """
    queue, job = _queue(worker, claim), _job(worker, claim)
    if job is None:
        return True
    registry, execution = _started(worker, queue), _execution(worker, key, claim)

    def put(pipeline: Any) -> Any:
        waits = as_text(pipeline.hget(job.key, "status") or "") == JobStatus.QUEUED
        listed = execution and pipeline.zscore(registry.key, execution.composite_key) is not None
        pipeline.multi()
        if not waits or (execution and not listed):
            return False
        pipeline.lrem(claim.intermediate_key, 1, claim.job_id)
        pipeline.lpush(claim.queue_key, claim.job_id)
        if execution:
            execution.delete(job, pipeline)
        pipeline.delete(claims.key_of(key))
        return True

    watched = job.key, registry.key, claims.key_of(key)
    return bool(worker.connection.transaction(put, *watched, value_from_callable=True))


def has_started(worker: BaseWorker, key: str) -> bool:
    """Whether a job of the worker with this key was started, and has not ended."""
    claim = claims.read(worker.connection, key)
    execution = claim and _execution(worker, key, claim)
    if not claim or not execution:
        return False
    registry = _started(worker, _queue(worker, claim))
    return worker.connection.zscore(registry.key, execution.composite_key) is not None


def _abandon(worker: BaseWorker, claim: Claim) -> None:
    """Have RQ's own rule for abandoned jobs applied now, instead of when the heartbeat has run out."""
    registry = _started(worker, _queue(worker, claim))
    expired = {f"{claim.job_id}:{claim.execution_id}": _PAST}
    if worker.connection.zscore(registry.key, next(iter(expired))) is None:
        return
    worker.connection.zadd(registry.key, expired, xx=True)
    registry.cleanup(exception_handlers=worker._exc_handlers)


def _queue(worker: BaseWorker, claim: Claim) -> Queue:
    return worker.queue_class.from_queue_key(
        claim.queue_key,
        connection=worker.connection,
        job_class=worker.job_class,
        serializer=worker.serializer,
    )


def _job(worker: BaseWorker, claim: Claim) -> Job | None:
    try:
        return worker.job_class.fetch(
            claim.job_id, connection=worker.connection, serializer=worker.serializer
        )
    except NoSuchJobError:
        return None


def _started(worker: BaseWorker, queue: Queue) -> StartedJobRegistry:
    # Callbacks of jobs run in a thread that is not the main one: without signals, that is.
    return StartedJobRegistry(
        queue=queue, job_class=worker.job_class, death_penalty_class=TimerDeathPenalty
    )


def _execution(worker: BaseWorker, key: str, claim: Claim) -> Execution | None:
    if claim.execution_id is None:
        return None
    execution = Execution(claim.execution_id, claim.job_id, worker.connection)
    execution.worker_name = key[len(worker.redis_worker_namespace_prefix) :]
    return execution
