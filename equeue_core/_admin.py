"""Changes of jobs that nobody holds: cancel, requeue, purge, pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equeue_core import _clock, _lookup
from equeue_core import _ledger as books
from equeue_core._job import State
from equeue_core._store import _rows as rows
from equeue_core._store._queue_keys import Ledger
from equeue_core.errors import DuplicateJob, JobNotFound, JobStateError

if TYPE_CHECKING:
    from equeue_core._store import Txn

BATCH = 1000
"""Jobs that one transaction changes at most; what is longer goes on in the next one."""


def find(txn: Txn, ledger: Ledger, job_id: int) -> _lookup.Found:
    """The job.

    Raises:
        JobNotFound: the queue has none with this id.
    """
    found = _lookup.find(txn, ledger, job_id)
    if found is None:
        raise JobNotFound(f"no job {job_id}: it never was, or it was vacuumed or purged")
    return found


def cancel(txn: Txn, ledger: Ledger, job_id: int, width: int) -> None:
    """Make a pending or scheduled job CANCELLED.

    Raises:
        JobNotFound: the queue has none with this id.
        JobStateError: it runs, or it ended.
    """
    found = find(txn, ledger, job_id)
    if not _lookup.is_waiting(found):
        raise JobStateError(
            f"job {job_id} is {found.state}: only pending and scheduled jobs can be cancelled"
        )
    counts = books.load_counts(txn, ledger)
    row = _lookup.take_waiting(txn, ledger, counts, found)
    books.place_cancelled(txn, ledger, counts, row, _clock.wall(), width)
    books.save_counts(txn, ledger, counts)
    ledger.environment.bells.broadcast(ledger.id)


def requeue(txn: Txn, ledger: Ledger, job_id: int) -> None:
    """Make an ended job pending again, behind its equals, with all its retries.

    Raises:
        JobNotFound: the queue has none with this id.
        JobStateError: it has not ended.
        DuplicateJob: another job has its unique key now.
    """
    found = find(txn, ledger, job_id)
    if not _lookup.has_ended(found):
        raise JobStateError(f"job {job_id} is {found.state}: only ended jobs can be requeued")
    counts = books.load_counts(txn, ledger)
    _revive(txn, ledger, counts, found)
    books.save_counts(txn, ledger, counts)
    ledger.environment.bells.ring(ledger.id)


def _revive(txn: Txn, ledger: Ledger, counts: books.Counts, found: _lookup.Found) -> None:
    books.remember_unique(txn, ledger, rows.unpack_end(found.value)[2])
    row = _lookup.take_ended(txn, ledger, counts, found)
    row.retries = 0
    books.place_behind(txn, ledger, counts, row)


def requeue_failed(txn: Txn, ledger: Ledger, after: bytes | None) -> tuple[int, bytes | None]:
    """Requeue a batch of failed jobs: how many, and the key to go on after (None at the end).

    A job whose unique key was taken meanwhile stays failed.
    """
    batch = _lookup.page(txn, ledger, State.FAILED, BATCH, after)
    counts = books.load_counts(txn, ledger)
    number = 0
    for found in batch:
        try:
            _revive(txn, ledger, counts, found)
        except DuplicateJob:
            continue
        number += 1
    books.save_counts(txn, ledger, counts)
    ledger.environment.bells.ring(ledger.id, number)
    return number, batch[-1].key if len(batch) == BATCH else None


def purge(txn: Txn, ledger: Ledger, state: State) -> int:
    """Remove a batch of jobs in `state`; how many (0 at the end).

    Raises:
        JobStateError: `state` is running.
    """
    if state is State.RUNNING:
        raise JobStateError("running jobs cannot be purged: their consumers hold them")
    batch = _lookup.page(txn, ledger, state, BATCH, None)
    counts = books.load_counts(txn, ledger)
    for found in batch:
        if _lookup.is_waiting(found):
            row = _lookup.take_waiting(txn, ledger, counts, found)
            books.forget_unique(txn, ledger, row)
        else:
            _lookup.take_ended(txn, ledger, counts, found)
    if batch:
        books.save_counts(txn, ledger, counts)
        ledger.environment.bells.broadcast(ledger.id)
    return len(batch)


def pause(txn: Txn, ledger: Ledger, paused: bool) -> None:
    """Stop or resume the handing out of jobs, for all processes."""
    counts = books.load_counts(txn, ledger)
    if bool(counts[rows.PAUSED]) == paused:
        return
    counts[rows.PAUSED] = int(paused)
    books.save_counts(txn, ledger, counts)
    if not paused:
        ledger.environment.bells.ring(ledger.id, counts[rows.N_PENDING])


def count(txn: Txn, ledger: Ledger) -> dict[str, int]:
    """The queue's counters by state, and the total ever put."""
    counts = books.load_counts(txn, ledger)
    result = {str(state): counts[_lookup.COUNTER[state]] for state in State}
    result["total"] = counts[rows.N_TOTAL]
    return result
