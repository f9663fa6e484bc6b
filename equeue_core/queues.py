"""Queues as the command line sees them, whatever put the jobs there. **Not a stable API**: it may change
in any release, and is meant for the command line and for the adapters that are released together with the
core.

An adapter makes its queues known by an entry point of the group ``equeue.queues`` that names its `Source`.
So the core imports no adapter, and an adapter whose library is not installed is passed over.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import entry_points
from itertools import islice
from typing import Any, ClassVar

from equeue_core import _admin, _lookup
from equeue_core._job import Job, JobError, State
from equeue_core._queue import Queue
from equeue_core._store._names import find_queue
from equeue_core._store_handle import Store
from equeue_core.errors import EQueueError, JobNotFound, PayloadError

__all__ = [
    "GROUP",
    "STATES",
    "AdapterMissing",
    "CoreQueue",
    "JobView",
    "NotSupported",
    "QueueNotFound",
    "QueueView",
    "Source",
    "WorkerView",
    "all_jobs",
    "existing",
    "make",
    "queue",
    "queues",
    "require_adapter",
    "sources",
    "workers",
]

GROUP = "equeue.queues"
"""The group of the adapters' entry points."""

STATES = tuple(str(state) for state in State)
"""The states that all kinds of queues have; an adapter's may have more."""

_PAGE = 500
"""Jobs that are looked up in one transaction."""


class NotSupported(EQueueError):
    """This kind of queue has no such operation."""


class QueueNotFound(EQueueError, LookupError):
    """The store has no queue of this name."""


class AdapterMissing(EQueueError):
    """The name is one of an adapter's queues, and the adapter's library is not installed."""


@dataclass(frozen=True)
class JobView:
    """A job as it is shown.

    Attributes:
        job_id: its id, as the commands take it.
        queue: the queue's name, as the commands take it.
        state: one of `STATES`, or one that only its kind has.
        summary: one line that says what it is.
        payload: what is to be done, as plain data as far as possible.
        details: more facts by name. Names that end in ``_at`` are times in epoch seconds.
        errors: what went wrong, the latest last.
    """

    job_id: str
    queue: str
    state: str
    summary: str
    payload: Any
    details: dict[str, Any] = field(default_factory=dict)
    errors: Sequence[JobError] = ()


@dataclass(frozen=True)
class WorkerView:
    """A process that works on jobs.

    Attributes:
        kind: what it works for: ``core``, or an adapter's.
        name: its name there.
        pid: its process id, as it sees itself; 0 if it is not known.
        host: its host or container name.
        since: when it began, in epoch seconds.
        holds: its jobs in hand, as ``queue job-id``.
        details: more facts by name, as in `JobView`.
    """

    kind: str
    name: str
    pid: int
    host: str
    since: float
    holds: Sequence[str] = ()
    details: dict[str, Any] = field(default_factory=dict)


class QueueView(ABC):
    """One queue of a store.

    Attributes:
        name: as the commands take it.
        kind: what put the jobs there: ``core``, or an adapter's.
    """

    name: str
    kind: str

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Jobs by state; all `STATES` are there."""

    def ever_put(self) -> int | None:
        """How many jobs were ever put; None if that is not known."""
        return None

    @abstractmethod
    def paused(self) -> bool:
        """Whether no jobs are handed out."""

    @abstractmethod
    def jobs(self, state: str | None, limit: int) -> Iterator[JobView]:
        """Up to `limit` jobs, in `state` or in any.

        Raises:
            ValueError: this kind of queue has no such state.
        """

    @abstractmethod
    def job(self, job_id: str) -> JobView:
        """One job.

        Raises:
            JobNotFound: there is none of this id.
        """

    @abstractmethod
    def latest_failed(self, limit: int) -> Iterator[JobView]:
        """Up to `limit` failed jobs, the one that failed last first. How many have failed does not matter to
        the time it takes.
        """

    @abstractmethod
    def oldest_pending(self) -> float | None:
        """When the pending job was put that has waited longest, in epoch seconds; None if there is none. How
        many wait does not matter to the time it takes: the jobs that are next in line are looked at.
        """

    @abstractmethod
    def put(self, payload: Any, **options: Any) -> str:
        """Add a job; its id.

        Parameters:
            payload: plain data; an adapter says what it has to contain.
            options: those of ``Queue.put`` that were given.

        Raises:
            PayloadError: it cannot be a job of this queue.
            NotSupported: there is no such option here.
        """

    @abstractmethod
    def requeue(self, job_id: str) -> None:
        """Have an ended job run again."""

    @abstractmethod
    def requeue_failed(self) -> int:
        """`requeue` every failed job; how many."""

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """Keep a waiting job from running."""

    @abstractmethod
    def purge(self, state: str) -> int:
        """Remove every job in `state`; how many."""

    @abstractmethod
    def pause(self) -> None:
        """Hand out no more jobs."""

    @abstractmethod
    def resume(self) -> None:
        """Hand out jobs again."""


class CoreQueue(QueueView):
    """A queue of the core. An adapter whose queues are such derives its own from it.

    Parameters:
        queue: the queue, which is there.
    """

    kind = "core"

    def __init__(self, queue: Queue[Any]) -> None:
        self.queue = queue
        self.name = queue.name

    def describe(self, job: Job) -> tuple[str, Any, dict[str, Any]]:
        """Summary, payload and further details of a job."""
        payload = _decoded(job)
        if isinstance(payload, (str, bytes)):
            return _shown(payload), payload, {}
        try:
            return json.dumps(payload, default=_shown, skipkeys=True), payload, {}
        except RecursionError:
            return "(nested too deeply to be shown)", payload, {}

    def view(self, job: Job) -> JobView:
        """The job as it is shown."""
        summary, payload, more = self.describe(job)
        details = {
            "attempts": job.attempts,
            "retries": job.retries,
            "max_retries": job.max_retries,
            "priority": job.priority,
            "unique": job.unique,
            "enqueued_at": job.enqueued_at,
            "due_at": job.due_at,
            "expires_at": job.expires_at,
            "claimed_at": job.claimed_at,
            "lease_ends_at": job.deadline,
            "finished_at": job.finished_at,
            "owner": job.owner,
            "result": job.result,
            **more,
        }
        return JobView(
            str(job.job_id), self.name, str(job.state), summary, payload, details, job.errors
        )

    def counts(self) -> dict[str, int]:
        counted = self._count()
        return {state: counted[state] for state in STATES}

    def ever_put(self) -> int | None:
        return self._count()["total"]

    def _count(self) -> dict[str, int]:
        # Not Queue.stats(), which gives back the jobs of the dead first: a look changes nothing.
        queue = self.queue
        counted: dict[str, int] = queue._environment.read(
            partial(_admin.count, ledger=queue._ledger)
        )
        return counted

    def paused(self) -> bool:
        return self.queue.paused

    def jobs(self, state: str | None, limit: int) -> Iterator[JobView]:
        wanted = None if state is None else State(state)
        return map(self.view, islice(all_jobs(self.queue, wanted, min(limit, _PAGE)), limit))

    def job(self, job_id: str) -> JobView:
        return self.view(self.queue.job(_number(job_id)))

    def latest_failed(self, limit: int) -> Iterator[JobView]:
        queue = self.queue
        found = queue._environment.read(
            partial(_lookup.latest_failed, ledger=queue._ledger, limit=limit)
        )
        return map(self.view, map(queue._describe, found))

    def oldest_pending(self) -> float | None:
        queue = self.queue
        put_at: float | None = queue._environment.read(
            partial(_lookup.longest_waiting, ledger=queue._ledger)
        )
        return put_at

    def put(self, payload: Any, **options: Any) -> str:
        return str(self.queue.put(payload, **options))

    def requeue(self, job_id: str) -> None:
        self.queue.requeue(_number(job_id))

    def requeue_failed(self) -> int:
        return self.queue.requeue_failed()

    def cancel(self, job_id: str) -> None:
        self.queue.cancel(_number(job_id))

    def purge(self, state: str) -> int:
        return self.queue.purge(state)

    def pause(self) -> None:
        self.queue.pause()

    def resume(self) -> None:
        self.queue.resume()


class Source(ABC):
    """Where a kind of queue comes from. Making one touches nothing.

    Attributes:
        kind: the kind of its queues.
        demo: a module that ``equeue demo`` runs; None: there is none.
        packages: what it builds on, for ``equeue doctor``.
    """

    kind: ClassVar[str]
    demo: ClassVar[str | None] = None
    packages: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def queues(self, store: Store, names: Iterable[str]) -> list[QueueView]:
        """Its queues in the store. Looking for them changes nothing.

        Parameters:
            store: the store.
            names: the names of the core's queues; those that are this adapter's are among them.
        """

    def make(self, store: Store, name: str) -> QueueView | None:
        """A queue that is not there yet; None if the name is none of this kind."""
        return None

    def workers(self, store: Store) -> list[WorkerView]:
        """Its workers that are none of the core's owners."""
        return []


@cache
def sources() -> tuple[list[Source], dict[str, str]]:
    """The adapters' sources, and of those whose library is not installed the reason, by name.

    They are looked for once: that takes longer than a look at a store.
    """
    found: dict[str, Source] = {}
    missing: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in found or entry.name in missing:
            continue  # the same release, seen twice on the path
        try:
            found[entry.name] = entry.load()()
        except ImportError as error:
            missing[entry.name] = str(error)
    return [found[name] for name in sorted(found)], missing


def existing(store: Store, name: str) -> Queue[Any]:
    """A handle on a queue that is there; unlike others, it takes no lock for writing at its first use."""
    queue: Queue[Any] = store.queue(name)
    environment = store._environment
    queue_id = environment.read(partial(find_queue, name=name))
    if queue_id is not None:
        queue._lazy_ledger = environment.ledger(queue_id)
    return queue


def queues(store: Store) -> list[QueueView]:
    """Every queue of the store, each by a name of its own; the core's first."""
    names = store.queues()
    views: dict[str, QueueView] = {}
    others: list[QueueView] = []
    for source in sources()[0]:
        for view in source.queues(store, names):
            if isinstance(view, CoreQueue):
                views[view.name] = view
            else:
                others.append(view)
    ordered = [views.get(name) or CoreQueue(existing(store, name)) for name in names]
    return [*ordered, *(view for view in others if view.name not in names)]


def queue(store: Store, name: str) -> QueueView:
    """The queue of this name.

    Raises:
        QueueNotFound: there is none.
        AdapterMissing: there is none as far as can be seen, because the adapter for it cannot be used.
    """
    there = queues(store)
    for view in there:
        if view.name == name:
            return view
    require_adapter(name)
    known = ", ".join(repr(view.name) for view in there[:10]) or "none"
    more = f" and {len(there) - 10} more" if len(there) > 10 else ""
    raise QueueNotFound(
        f"there is no queue {name!r} in the store at {store.path}: it has {known}{more}"
    )


def make(store: Store, name: str) -> QueueView:
    """A queue that is not there yet: of the adapter whose names are such, or else one of the core.

    Raises:
        AdapterMissing: the names of an adapter that cannot be used are such.
    """
    require_adapter(name)
    made = (source.make(store, name) for source in sources()[0])
    return next(filter(None, made), None) or CoreQueue(store.queue(name))


def require_adapter(name: str) -> None:
    """Refuse the name of a queue of an adapter that cannot be used.

    Raises:
        AdapterMissing: it is one.
    """
    missing = sources()[1]
    place, colon, _ = name.partition(":")
    adapter = place.partition("@")[0]
    if colon and adapter in missing:
        raise AdapterMissing(
            f"{name!r} is the name of a queue of {adapter}, whose adapter is not in use here "
            f"({missing[adapter]}): install equeue with its extra: {adapter}"
        )


def workers(store: Store) -> list[WorkerView]:
    """Every live process that works on jobs of the store."""
    holds: dict[int, list[str]] = {}
    for name in store.queues():
        for job in all_jobs(existing(store, name), State.RUNNING):
            if job.owner is not None:
                holds.setdefault(job.owner, []).append(f"{name} {job.job_id}")
    found = [
        WorkerView(
            "core",
            f"owner {owner.owner_id}",
            owner.pid,
            owner.host,
            owner.since,
            holds.get(owner.owner_id, []),
        )
        for owner in store.owners()
    ]
    for source in sources()[0]:
        found += source.workers(store)
    return found


def all_jobs(queue: Queue[Any], state: State | None, page_size: int = _PAGE) -> Iterator[Job]:
    """All jobs of a queue, in `state` or in any, page by page."""
    after = None
    while page := queue.jobs(state, page_size, after):
        yield from page
        after = page[-1]


def _number(job_id: str) -> int:
    """The id of one of the core's jobs.

    Raises:
        JobNotFound: it is none.
    """
    if job_id.isascii() and job_id.isdigit() and len(job_id) < 21:
        return int(job_id)
    raise JobNotFound(f"no job {job_id[:50]!r}: the ids of this queue are numbers")


def _decoded(job: Job) -> Any:
    """The payload: msgpack, else JSON (of a codec of the user's own), else the bytes."""
    try:
        return job.payload
    except PayloadError:
        try:
            return json.loads(job.payload_bytes)
        except (ValueError, RecursionError):
            return job.payload_bytes


def _shown(value: Any) -> str:
    """What JSON has no form for, in a summary."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
