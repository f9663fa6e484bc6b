"""Waiting for a change: what becomes of jobs (a result, a queue worked off), or of an adapter's entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from equeue_core import _admin, _clock, _lookup
from equeue_core import _config as config
from equeue_core import _ledger as books
from equeue_core._consumer import BACKSTOP
from equeue_core._job import Job, State
from equeue_core._store import _rows as rows
from equeue_core.errors import (
    JobCancelled,
    JobFailed,
    JoinTimeout,
    ResultTimeout,
)

if TYPE_CHECKING:
    from equeue_core._handle import Handle
    from equeue_core._queue import Queue
    from equeue_core._store import Txn
    from equeue_core._store._queue_keys import Ledger
    from equeue_core._store._waiter import Waiter

Look = Callable[["Txn"], Any]
"""Looks in a transaction for what is waited for; None: not yet."""


def wait_for(
    handle: Handle,
    changes: tuple[int, ...],
    look: Look,
    timeout: float | None,
    meanwhile: Callable[[], None] | None = None,
    adds: int = 0,
    writes: bool = False,
    looked: bool = False,
) -> Any:
    """What `look` finds, as soon as it finds something; None when `timeout` seconds have passed.

    Parameters:
        handle: on whose behalf. Its close kicks its waiters.
        changes: the queue ids at whose changes to look again; each second in any case.
        look: what is waited for.
        timeout: None: no limit.
        meanwhile: is called before each further look.
        adds: as for `Environment.write`.
        writes: `look` changes something if it finds something.
        looked: it has found nothing a moment ago.
    """
    started = _clock.monotonic()
    environment = handle._environment
    if not looked:
        found = environment.write(look, adds) if writes else environment.read(look)
        if found is not None or timeout == 0:
            return found
    waiter = environment.bells.waiter(changes=changes)
    handle._waiters.add(waiter)
    try:
        while True:
            found = handle._environment.write(partial(look_or_register, look, waiter), adds)
            if found is not None:
                return found
            left = time_left(started, timeout)
            if left <= 0:
                return None
            waiter.wait(left)
            if meanwhile is not None:
                meanwhile()
    finally:
        # A broadcast bell counts nobody, so there is nothing to take back.
        handle._waiters.discard(waiter)
        waiter.close()


def _wait_for_jobs(queue: Queue[Any], look: Look, timeout: float | None) -> Any:
    """`wait_for` a change of the queue, while its upkeep goes on."""
    return wait_for(queue, (queue._ledger.id,), look, timeout, queue._consumer.keep_up)


def look_or_register(look: Look, waiter: Waiter, txn: Txn) -> Any:
    """What `look` finds; if it finds nothing, the waiter will hear of the next change."""
    found = look(txn)
    if found is None:
        waiter.register()
    return found


def time_left(started: float, timeout: float | None) -> float:
    """Seconds that a wait may take, at most the backstop's."""
    if timeout is None:
        return BACKSTOP
    return min(BACKSTOP, started + timeout - _clock.monotonic())


def ended(ledger: Ledger, job_id: int) -> Look:
    """Looks for the job's end; raises JobNotFound if there is no such job."""
    config.check_job_id(job_id)

    def look(txn: Txn) -> _lookup.Found | None:
        found = _admin.find(txn, ledger, job_id)
        return found if _lookup.has_ended(found) else None

    return look


def worked_off(ledger: Ledger) -> Look:
    """Looks whether nothing is pending, scheduled or running."""

    def look(txn: Txn) -> bool | None:
        counts = books.load_counts(txn, ledger)
        left = counts[rows.N_PENDING] + counts[rows.N_SCHEDULED] + counts[rows.N_RUNNING]
        return True if left == 0 else None

    return look


def result(queue: Queue[Any], job_id: int, timeout: float | None) -> Any:
    """See ``Queue.result``."""
    found = _wait_for_jobs(queue, ended(queue._ledger, job_id), timeout)
    if found is None:
        raise ResultTimeout(f"job {job_id} has not ended within {timeout} seconds")
    return result_of(queue._describe(found))


def result_of(job: Job) -> Any:
    """The result of a job that ended, or its end raised as an error."""
    last = job.errors[-1].message if job.errors else "no error was given"
    if job.state is State.FAILED:
        raise JobFailed(f"job {job.job_id} failed: {last}", job)
    if job.state is State.CANCELLED:
        raise JobCancelled(f"job {job.job_id} was cancelled")
    return job.result


def join(queue: Queue[Any], timeout: float | None) -> None:
    """See ``Queue.join``."""
    if _wait_for_jobs(queue, worked_off(queue._ledger), timeout) is None:
        raise JoinTimeout(f"the queue {queue.name!r} was not worked off within {timeout} seconds")
