"""Looks at a store, and what can be told from several of them: rates and their histories.

Nothing here knows a terminal.
"""

from __future__ import annotations

import heapq
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from equeue_core import queues as views
from equeue_core._store import _files
from equeue_core._store_handle import Store

RUNNING = 100
"""Running jobs of one queue, and of all, that a look has at most."""

FAILED = 50
"""Failed jobs that a look has at most."""

KEPT = 240
"""Rates that a history keeps."""

AVERAGED = 5
"""Rates of which the one that is shown is the mean: of a second each, they jump."""

_ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class QueueLook:
    """A queue at the moment of a look.

    Attributes:
        name: as the commands take it.
        kind: ``core``, or an adapter's.
        counts: jobs by state.
        ever_put: how many jobs were ever put; None if that is not known.
        paused: whether no jobs are handed out.
        oldest_at: when the pending job was put that has waited longest (epoch seconds); None: there is none.
    """

    name: str
    kind: str
    counts: Mapping[str, int]
    ever_put: int | None = None
    paused: bool = False
    oldest_at: float | None = None


@dataclass(frozen=True)
class Look:
    """What one look found.

    Attributes:
        at: when, in monotonic seconds.
        wall: when, in epoch seconds.
        sync: the store's durability.
        file_bytes: size of its data file.
        queues: all its queues.
        running: running jobs, those that have run longest first; at most `RUNNING`.
        failed: failed jobs, the latest first; at most `FAILED`.
        owners: the core's live owners, as ``pid@host``, by their numbers.
        workers: live processes that work on jobs: these, and the adapters' own.
        seconds: how long it took.
    """

    at: float
    wall: float
    sync: str = ""
    file_bytes: int = 0
    queues: Sequence[QueueLook] = ()
    running: Sequence[views.JobView] = ()
    failed: Sequence[views.JobView] = ()
    owners: Mapping[int, str] = field(default_factory=dict)
    workers: int = 0
    seconds: float = 0.0

    def total(self, *states: str) -> int:
        """How many jobs are in these states, in all queues."""
        return sum(each.counts.get(state, 0) for each in self.queues for state in states)


def take(store: Store) -> Look:
    """Look at a store. Nothing changes, and how many jobs there are does not matter to the time it takes."""
    at, wall = time.monotonic(), time.time()
    queues: list[QueueLook] = []
    running: list[views.JobView] = []
    failed: list[Iterable[views.JobView]] = []
    for view in views.queues(store):
        counts = view.counts()
        oldest_at = view.oldest_pending() if counts["pending"] else None
        queues.append(
            QueueLook(view.name, view.kind, counts, view.ever_put(), view.paused(), oldest_at)
        )
        if counts["running"]:
            running += view.jobs("running", RUNNING)
        if counts["failed"]:
            failed.append(view.latest_failed(FAILED))
    running.sort(key=lambda job: began_at(job) or wall)
    # Merged while they are made: most of them are not needed, and are not made.
    latest = heapq.merge(*failed, key=lambda job: -(job.details.get("finished_at") or 0.0))
    living = owners(store)
    others = [
        each
        for source in views.sources()[0]
        for each in source.workers(store)
        # None: it is not known.
        if each.details.get("alive") is not False
    ]
    return Look(
        at=at,
        wall=wall,
        sync=store.sync,
        file_bytes=os.path.getsize(os.path.join(store.path, _files.DATA)),
        queues=queues,
        running=running[:RUNNING],
        failed=list(islice(latest, FAILED)),
        owners=living,
        workers=len(living) + len(others),
        seconds=time.monotonic() - at,
    )


def began_at(job: views.JobView) -> float | None:
    """Since when a running job runs, in epoch seconds; None if that is not known."""
    began: float | None = job.details.get("claimed_at") or job.details.get("started_at")
    return began


def owner_of(job: views.JobView, look: Look) -> str:
    """Who runs a job: a process of the core, or a worker of RQ."""
    owner = job.details.get("owner")
    if isinstance(owner, int):
        return look.owners.get(owner) or f"owner {owner}, dead"
    return str(owner or "")


def with_owner(job: views.JobView, store: Store) -> views.JobView:
    """The job, with more than a number of the process that runs it."""
    owner = job.details.get("owner")
    if not isinstance(owner, int):
        return job
    who = owners(store).get(owner, "dead")
    return replace(job, details={**job.details, "owner": f"{owner}, {who}"})


def owners(store: Store) -> dict[int, str]:
    """The core's live owners, as ``pid@host``, by their numbers."""
    return {each.owner_id: f"{each.pid}@{each.host}" for each in store.owners()}


class Flow(NamedTuple):
    """Jobs that came in and went out.

    Attributes:
        came: put, or brought back by a requeue.
        went: done, failed, cancelled or removed.
    """

    came: float
    went: float


def flow(before: QueueLook | None, after: QueueLook) -> Flow | None:
    """What has come and gone between two looks; None: the later one is at another store.

    All queues but RQ's count what is put; what went is what was put and is not there to be done any more. Of
    RQ's, what ended shows in the states, as long as RQ keeps it.
    """
    if before is None:
        before = QueueLook(after.name, after.kind, {}, None if after.ever_put is None else 0)
    left = _unfinished(after) - _unfinished(before)
    if before.ever_put is not None and after.ever_put is not None:
        came = after.ever_put - before.ever_put
        if came < 0:
            return None
    else:
        ended = sum(
            max(0, after.counts.get(each, 0) - before.counts.get(each, 0)) for each in _ENDED
        )
        came = ended + left
    went = came - left
    # What was requeued has gone out before; what RQ has removed was not seen to end.
    return Flow(max(came, 0) + max(-went, 0), max(went, 0) + max(-came, 0))


def _unfinished(look: QueueLook) -> int:
    return sum(number for state, number in look.counts.items() if state not in _ENDED)


class Series:
    """The latest rates of one queue, or of all.

    Attributes:
        came: jobs per second that came in, the latest last.
        went: jobs per second that went out.
    """

    def __init__(self) -> None:
        self.came: deque[float] = deque(maxlen=KEPT)
        self.went: deque[float] = deque(maxlen=KEPT)

    def add(self, flow: Flow, seconds: float) -> None:
        """Add what came and went within so many seconds."""
        self.came.append(flow.came / seconds)
        self.went.append(flow.went / seconds)

    def rates(self) -> Flow | None:
        """The mean of the latest `AVERAGED` rates; None: there are none yet."""
        if not self.came:
            return None
        return Flow(_mean(self.came), _mean(self.went))


def _mean(values: deque[float]) -> float:
    latest = list(values)[-AVERAGED:]
    return sum(latest) / len(latest)


class History:
    """What is known from all looks so far.

    Attributes:
        look: the latest one; None before the first.
        all: the rates of all queues together.
        pending: how many jobs of all queues were pending at each look.
    """

    def __init__(self) -> None:
        self.look: Look | None = None
        self.all = Series()
        self.pending: deque[float] = deque(maxlen=KEPT)
        self._queues: dict[str, Series] = {}

    def add(self, look: Look) -> None:
        """Note a look, which is later than all before."""
        before, self.look = self.look, look
        self.pending.append(look.total("pending"))
        self._queues = {each.name: self._queues.get(each.name) or Series() for each in look.queues}
        if before is None or look.at <= before.at:
            return
        seconds = look.at - before.at
        earlier = {each.name: each for each in before.queues}
        came = went = 0.0
        for each in look.queues:
            found = flow(earlier.get(each.name), each)
            if found is None:
                self._queues[each.name] = Series()
                continue
            self._queues[each.name].add(found, seconds)
            came, went = came + found.came, went + found.went
        self.all.add(Flow(came, went), seconds)

    def of(self, name: str) -> Series:
        """The rates of one queue."""
        return self._queues.get(name) or Series()
