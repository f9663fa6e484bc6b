"""RQ's queues for the command line, through RQ's own classes on each of the store's databases."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import redis
import rq
from rq import registry
from rq.exceptions import InvalidJobOperation
from rq.job import Job, JobStatus
from rq.suspension import is_suspended
from rq.utils import as_text

from equeue_core import (
    EQueueError,
    JobError,
    JobNotFound,
    JobStateError,
    PayloadError,
    Store,
    StoreError,
)
from equeue_core.queues import STATES, JobView, NotSupported, QueueView, Source, WorkerView
from equeue_core.storage import Space, SpaceId, first_key
from equeue_rq import _lives as lives
from equeue_rq._keyspace import DATABASES, META
from equeue_rq._paths import connect
from equeue_rq._plain import KeepingSerializer, Kept, load
from equeue_rq.client import LMDBRedis

_STATES = {"queued": "pending", "started": "running", "finished": "done", "canceled": "cancelled"}
"""RQ's states that have another name in common; the others are shown as they are."""

_REGISTRIES: dict[str, Any] = {
    "scheduled": registry.ScheduledJobRegistry,
    "running": registry.StartedJobRegistry,
    "done": registry.FinishedJobRegistry,
    "failed": registry.FailedJobRegistry,
    "cancelled": registry.CanceledJobRegistry,
    "deferred": registry.DeferredJobRegistry,
}
"""Where RQ keeps the jobs of each state, but for the pending ones."""

_PAGE = 100
"""Jobs that are read at a time."""

_FEW = 10
"""The same, of those whose results are read, too."""


class Unreadable(EQueueError):
    """RQ cannot make a job of what is stored as one."""


class RQSource(Source):
    """The queues of all databases of the store."""

    kind = "rq"
    demo = "equeue_rq.demo"
    packages = ("rq", "redis", "lupa")

    def queues(self, store: Store, names: Iterable[str]) -> list[QueueView]:
        """``rq:NAME`` for those of database 0, ``rq@DB:NAME`` for the others, and where a queue of the
        core has that name.
        """
        taken = set(names)
        found: list[QueueView] = []
        for db, connection in _databases(store):
            with _errors():
                queues = rq.Queue.all(connection, serializer=KeepingSerializer)
            for queue in sorted(queues, key=lambda each: each.name):
                name = f"rq:{queue.name}"
                if db or name in taken:
                    name = f"rq@{db}:{queue.name}"
                found.append(RQQueue(name, queue, db, store))
        return found

    def make(self, store: Store, name: str) -> QueueView | None:
        """A queue; RQ makes it known with its first job."""
        place, _, queue_name = name.partition(":")
        marker, _, db = place.partition("@")
        if marker != "rq" or not queue_name:
            return None
        if (db or "0") not in map(str, range(DATABASES)):
            raise ValueError(f"there is no database {db!r}: RQ's are 0 to {DATABASES - 1}")
        number = int(db or 0)
        connection = connect(store.path, db=number)
        queue = rq.Queue(queue_name, connection=connection, serializer=KeepingSerializer)
        return RQQueue(name, queue, number, store)

    def workers(self, store: Store) -> list[WorkerView]:
        """The workers that are registered. Of those of `equeue_rq` it is known whether they live; others are
        registered for minutes after they were killed.
        """
        return [
            _describe_worker(worker, db, lives.is_alive(store.path, db, worker.key))
            for db, connection in _databases(store)
            for worker in _workers(connection)
        ]


class RQQueue(QueueView):
    """One queue of RQ.

    Parameters:
        name: as the commands take it.
        queue: RQ's queue, with a serializer that loads nothing.
        db: the number of its database.
        store: the store.
    """

    kind = "rq"

    def __init__(self, name: str, queue: rq.Queue, db: int, store: Store) -> None:
        self.name = name
        self.queue = queue
        self.db = db
        self.store = store
        self.connection = queue.connection

    def counts(self) -> dict[str, int]:
        """Stopped jobs are among the failed ones, as in RQ."""
        with _errors(), self.connection.pipeline() as pipeline:
            # Not the registries' own counts, which clean up first: a look changes nothing.
            pipeline.llen(self.queue.key)
            for place in _REGISTRIES:
                pipeline.zcard(self._key(place))
            pending, *others = pipeline.execute()
        counted = {"pending": pending, **dict(zip(_REGISTRIES, others, strict=True))}
        deferred = counted.pop("deferred")
        return {**{state: counted[state] for state in STATES}, "deferred": deferred}

    def _key(self, place: str) -> str:
        """Where RQ keeps the ids. Not by a registry of the queue: that of scheduled jobs refers to itself,
        and would keep the store open until the garbage collector comes.
        """
        return str(_REGISTRIES[place].key_template.format(self.queue.name))

    def paused(self) -> bool:
        """Whether the workers of its database are suspended."""
        with _errors():
            return bool(is_suspended(self.connection))

    def jobs(self, state: str | None, limit: int) -> Iterator[JobView]:
        known = ("pending", *_REGISTRIES)
        if state is not None and state not in (*known, "stopped"):
            raise ValueError(
                f"there is no state {state!r}: it is one of {', '.join(known)}, stopped"
            )
        number = 0
        # Of the failed ones, any number may not be stopped.
        page = _PAGE if state == "stopped" else min(max(limit, 1), _PAGE)
        for place in known if state is None else ["failed" if state == "stopped" else state]:
            for shown in self._in(place, page):
                if number == limit:
                    return
                if state in (None, place, shown.state):
                    number += 1
                    yield shown

    def latest_failed(self, limit: int) -> Iterator[JobView]:
        """Those that RQ will forget last: in the order of their ends, if all have the same `failure_ttl`.
        They are fewer than `limit` if some have expired and RQ has not noticed yet.
        """
        ids = self._ids("failed", 0, limit - 1, backwards=True)
        # Not all at once: most of them may not be wanted.
        for start in range(0, len(ids), _FEW):
            some = ids[start : start + _FEW]
            with _errors():
                found = self._read(some)
                results = [job.latest_result() if isinstance(job, Job) else None for job in found]
            for job_id, job, result in zip(some, found, results, strict=True):
                if job is not None:
                    shown = self._shown(job_id, job, "failed")
                    yield replace(shown, errors=_error(0, result)) if result else shown

    def oldest_pending(self) -> float | None:
        """Of the job at the head of the queue, where one that was enqueued ``at_front`` may stand before
        older ones.
        """
        with _errors():
            head = self._read(self._ids("pending", 0, 0))
        return _epoch(head[0].enqueued_at) if head and isinstance(head[0], Job) else None

    def _in(self, place: str, page: int) -> Iterator[JobView]:
        start = 0
        while True:
            ids = self._ids(place, start, start + page - 1)
            with _errors():
                found = self._read(ids)
            for job_id, job in zip(ids, found, strict=True):
                if job is not None:
                    yield self._shown(job_id, job, place)
            if len(ids) < page:
                return
            start += page

    def _shown(self, job_id: str, job: Job | Unreadable, place: str) -> JobView:
        if isinstance(job, Unreadable):
            return JobView(job_id, self.name, place, str(job), None)
        return self._view(job, place)

    def _read(self, ids: list[str]) -> list[Job | Unreadable | None]:
        """The jobs; None for one that has expired."""
        try:
            return [*Job.fetch_many(ids, self.connection, serializer=KeepingSerializer)]
        except redis.RedisError:
            raise
        except Exception as error:  # noqa: BLE001 - RQ raises anything at what it cannot read
            if len(ids) == 1:
                return [Unreadable(f"RQ cannot read the job ({type(error).__name__}: {error})")]
            return [job for job_id in ids for job in self._read([job_id])]

    def _ids(self, place: str, start: int, end: int, backwards: bool = False) -> list[str]:
        found: Any
        with _errors():
            if place == "pending":
                found = self.connection.lrange(self.queue.key, start, end)
            else:
                found = self.connection.zrange(self._key(place), start, end, desc=backwards)
        ids = [as_text(each) for each in found]
        # What is there of a started job is its execution.
        return [each.rpartition(":")[0] or each for each in ids] if place == "running" else ids

    def job(self, job_id: str) -> JobView:
        job = self._fetch(job_id)
        with _errors():
            results = job.results()
        shown = self._view(job, "")
        details, errors = dict(shown.details), list[JobError]()
        for number, result in enumerate(reversed(results), 1):
            if result.exc_string:
                errors += _error(number, result)
            elif isinstance(result.return_value, Kept):
                readable, value = load(result.return_value.raw)
                details["result"] = value if readable else result.return_value.raw
        details["attempts"] = len(results)
        return JobView(
            shown.job_id, self.name, shown.state, shown.summary, shown.payload, details, errors
        )

    def _fetch(self, job_id: str) -> Job:
        with _errors():
            (job,) = self._read([job_id])
        if isinstance(job, Unreadable):
            raise job
        if job is None or job.origin != self.queue.name:
            raise JobNotFound(
                f"no job {job_id!r} in {self.name!r}: it never was, or it has expired"
            )
        return job

    def _view(self, job: Job, place: str) -> JobView:
        status = _status(job) or place
        readable, called = load(job.data)
        payload: Any = {"description": job.description}
        if readable and isinstance(called, (list, tuple)) and len(called) == 4:
            function, instance, args, kwargs = called
            payload = {"function": function, "args": args, "kwargs": kwargs}
            if instance is not None:
                payload["instance"] = instance
        details = {
            "retries_left": job.retries_left,
            "enqueued_at": _epoch(job.enqueued_at),
            "created_at": _epoch(job.created_at),
            "due_at": self._due_at(job) if status == "scheduled" else None,
            "started_at": _epoch(job.started_at),
            "finished_at": _epoch(job.ended_at),
            "owner": job.worker_name,
            "depends_on": job._dependency_ids or None,
            "timeout": job.timeout,
        }
        state = _STATES.get(status, status)
        return JobView(job.id, self.name, state, job.description or job.id, payload, details)

    def _due_at(self, job: Job) -> float | None:
        with _errors():
            score: Any = self.connection.zscore(self._key("scheduled"), job.id)
        return None if score is None else float(score)

    def put(self, payload: Any, **options: Any) -> str:
        """Enqueue a call.

        Parameters:
            payload: a dict with ``function``, and ``args`` and ``kwargs`` if need be.
            options: ``delay`` in seconds.
        """
        given = dict(payload) if isinstance(payload, dict) else {}
        function = given.pop("function", None)
        args, kwargs = given.pop("args", []), given.pop("kwargs", {})
        if (
            given
            or not isinstance(function, str)
            or not isinstance(args, list)
            or not isinstance(kwargs, dict)
        ):
            raise PayloadError(
                'the payload of an RQ queue is like {"function": "module.name", "args": [1], "kwargs": {}}; '
                "all but the function may be left out"
            )
        delay = options.pop("delay", None)
        if options:
            raise NotSupported(f"a job of RQ has no {', '.join(sorted(options))} here")
        queue = rq.Queue(self.queue.name, connection=self.connection)
        with _errors():
            if delay is None:
                return queue.enqueue_call(function, args=tuple(args), kwargs=kwargs).id
            job = queue.create_job(
                function, args=tuple(args), kwargs=kwargs, status=JobStatus.SCHEDULED
            )
            due = datetime.now(timezone.utc) + timedelta(seconds=delay)
            return queue.schedule_job(job, due).id

    def requeue(self, job_id: str) -> None:
        job = self._fetch(job_id)
        with _errors():
            try:
                _REGISTRIES["failed"](queue=self.queue).requeue(job)
            except InvalidJobOperation:
                raise JobStateError(
                    f"job {job_id} is {self._view(job, '').state}: RQ requeues failed jobs only"
                ) from None

    def requeue_failed(self) -> int:
        number = 0
        for job_id in self._all_ids("failed"):
            # Others may have requeued or deleted it meanwhile.
            with contextlib.suppress(JobNotFound, JobStateError, Unreadable):
                self.requeue(job_id)
                number += 1
        return number

    def _all_ids(self, place: str) -> list[str]:
        return self._ids(place, 0, -1)

    def cancel(self, job_id: str) -> None:
        job = self._fetch(job_id)
        state = self._view(job, "").state
        if state not in ("pending", "scheduled", "deferred"):
            raise JobStateError(
                f"job {job_id} is {state}: only pending, scheduled and deferred jobs can be cancelled"
            )
        with _errors():
            job.cancel()

    def purge(self, state: str) -> int:
        if state == "running":
            raise JobStateError("running jobs cannot be purged: their workers hold them")
        if state != "pending" and state not in _REGISTRIES:
            raise ValueError(f"there is no state {state!r} to purge in a queue of RQ")
        number = 0
        for job_id in self._all_ids(state):
            with contextlib.suppress(JobNotFound, Unreadable), _errors():
                job = self._fetch(job_id)
                # Not one that went on meanwhile.
                if self._place(job) == state:
                    job.delete()
                    number += 1
                continue
            self._forget(state, job_id)
        return number

    @staticmethod
    def _place(job: Job) -> str:
        status = _status(job)
        return "failed" if status == "stopped" else _STATES.get(status, status)

    def _forget(self, place: str, job_id: str) -> None:
        """Remove what there is of a job that has expired, or cannot be read."""
        with _errors():
            self.connection.delete(Job.key_for(job_id))
            if place == "pending":
                self.connection.lrem(self.queue.key, 1, job_id)
            else:
                self.connection.zrem(self._key(place), job_id)

    def pause(self) -> None:
        raise NotSupported(self._whole_database("suspend"))

    def resume(self) -> None:
        raise NotSupported(self._whole_database("resume"))

    def _whole_database(self, verb: str) -> str:
        url = f"lmdb://{os.path.abspath(self.store.path)}?db={self.db}"
        return (
            f"RQ cannot pause one queue. For all queues of this database: rq {verb} "
            f"--connection-class equeue_rq.LMDBRedis --url {url!r}"
        )


def _databases(store: Store) -> Iterator[tuple[int, LMDBRedis]]:
    """The databases that have keys, and the connections to them."""
    prefixes = [META + db.to_bytes(2, "big") for db in range(DATABASES)]
    with Space(store, SpaceId.RQ) as space:
        first = space.read(lambda txn: [first_key(txn, prefix) for prefix in prefixes])
    for db, key in enumerate(first):
        if key is not None:
            yield db, connect(store.path, db=db)


def _workers(connection: LMDBRedis) -> Iterator[Any]:
    with _errors():
        for key in rq.Worker.all_keys(connection):
            # RQ itself would remove the key of one that is gone.
            if connection.exists(key):
                worker = rq.Worker.find_by_key(key, connection, serializer=KeepingSerializer)
                if worker is not None:
                    yield worker


def _describe_worker(worker: Any, db: int, lives_on: bool | None) -> WorkerView:
    queues = worker.queue_names()
    current = worker.get_current_job_id()
    details = {
        # What a killed one said last is not what it is.
        "state": "killed" if lives_on is False else as_text(worker.get_state()),
        "alive": lives_on,
        "db": db,
        "queues": queues,
        "heartbeat_at": _epoch(worker.last_heartbeat),
    }
    holds = [] if current is None else [as_text(current)]
    since = _epoch(worker.birth_date) or 0.0
    return WorkerView(
        "rq", worker.name, worker.pid or 0, worker.hostname or "", since, holds, details
    )


def _status(job: Job) -> str:
    status: Any = job.get_status(refresh=False)
    return str(getattr(status, "value", status) or "")


def _error(attempt: int, result: Any) -> list[JobError]:
    """What went wrong, as RQ tells it in a result; nothing if that tells of no error."""
    lines = (result.exc_string or "").strip().splitlines()
    if not lines:
        return []
    return [JobError(attempt, result.created_at.timestamp(), lines[-1], result.exc_string)]


def _epoch(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    # RQ's times are UTC, whether they say so or not.
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Have the engine's errors raised for what redis-py makes of them."""
    try:
        yield
    except redis.RedisError as error:
        cause = error.__cause__
        raise cause if isinstance(cause, EQueueError) else StoreError(str(error)) from error
