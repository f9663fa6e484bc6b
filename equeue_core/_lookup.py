"""Finding jobs: by id in whatever state, and page by page in the order of a state."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from equeue_core import _ledger as books
from equeue_core._job import Job, State
from equeue_core._ledger import Counts
from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core._store._queue_keys import Ledger
from equeue_core._store._scan import first_key, scan

if TYPE_CHECKING:
    from equeue_core._store import Txn


class Found(NamedTuple):
    """Where a job is."""

    state: State
    key: bytes
    value: bytes


_STATE_OF_KIND = {
    keys.PENDING: State.PENDING,
    keys.SCHEDULED: State.SCHEDULED,
    keys.RUNNING: State.RUNNING,
    keys.ENDED: State.DONE,
    keys.FAILED: State.FAILED,
    keys.CANCELLED: State.CANCELLED,
}

COUNTER = {
    State.PENDING: rows.N_PENDING,
    State.SCHEDULED: rows.N_SCHEDULED,
    State.RUNNING: rows.N_RUNNING,
    State.DONE: rows.N_DONE,
    State.FAILED: rows.N_FAILED,
    State.CANCELLED: rows.N_CANCELLED,
}


def prefix_of(ledger: Ledger, state: State) -> bytes:
    """What the keys of the queue's jobs in `state` start with."""
    return {
        State.PENDING: ledger.pending,
        State.SCHEDULED: ledger.scheduled,
        State.RUNNING: ledger.running,
        State.DONE: ledger.done,
        State.FAILED: ledger.failed,
        State.CANCELLED: ledger.cancelled,
    }[state]


def find(txn: Txn, ledger: Ledger, job_id: int) -> Found | None:
    """The job with this id, in whatever state it is; None if the queue has no such job."""
    if not 0 < job_id < 1 << 63:
        return None
    tail = keys.U64.pack(job_id)
    indexed = txn.get(ledger.index + tail)
    for key in (
        None if indexed is None else ledger.index[:2] + indexed,
        ledger.pending_zero + tail,
        first_key(txn, ledger.running + tail),
        ledger.failed + tail,
        _in_buckets(txn, ledger.done, tail),
        _in_buckets(txn, ledger.cancelled, tail),
    ):
        value = None if key is None else txn.get(key)
        if key is not None and value is not None:
            return Found(_STATE_OF_KIND[key[2:3]], key, value)
    return None


def _in_buckets(txn: Txn, prefix: bytes, tail: bytes) -> bytes | None:
    """The key of an ended job, looked for in each time bucket (see `books.bucket`)."""
    with txn.cursor() as cursor:
        start = prefix
        while cursor.set_range(start):
            key = cursor.key()
            if not key.startswith(prefix):
                return None
            bucket = key[:7]
            if cursor.set_key(bucket + tail):
                return bucket + tail
            start = bucket + b"\xff" * 9
    return None


def is_waiting(found: Found) -> bool:
    """Whether the job is pending or scheduled."""
    return found.state in (State.PENDING, State.SCHEDULED)


def has_ended(found: Found) -> bool:
    """Whether the job is done, failed or cancelled."""
    return found.state in (State.DONE, State.FAILED, State.CANCELLED)


def take_waiting(txn: Txn, ledger: Ledger, counts: Counts, found: Found) -> rows.Row:
    """Remove a pending or scheduled job from its place, to be placed elsewhere by the caller."""
    row = rows.Row.unpack(found.value)
    txn.delete(found.key)
    txn.delete(ledger.index + keys.U64.pack(row.job_id))
    counts[COUNTER[found.state]] -= 1
    books.forget_expiry(txn, ledger, counts, row)
    return row


def take_ended(txn: Txn, ledger: Ledger, counts: Counts, found: Found) -> rows.Row:
    """Remove a done, failed or cancelled job, to be placed elsewhere by the caller."""
    ended_at, _, row = rows.unpack_end(found.value)
    txn.delete(found.key)
    if found.state is State.FAILED:
        txn.delete(ledger.failed_at + keys.ordered_float(ended_at) + found.key[3:])
    counts[COUNTER[found.state]] -= 1
    return row


def page(txn: Txn, ledger: Ledger, state: State, limit: int, after: bytes | None) -> list[Found]:
    """Up to `limit` jobs in `state` in key order, following the key `after`."""
    prefix = prefix_of(ledger, state)
    start = prefix if after is None else after + b"\0"
    found: list[Found] = []
    for key, value in scan(txn, prefix, start):
        if len(found) == limit:
            break
        found.append(Found(state, key, value))
    return found


def pages(
    txn: Txn, ledger: Ledger, states: list[State], limit: int, after: Job | None
) -> list[Found]:
    """`page` over several states, one after the other; `after` is a job of the first one."""
    found: list[Found] = []
    for state in states:
        key = after._key if after is not None and after.state == state else None
        found += page(txn, ledger, state, limit - len(found), key)
        if len(found) == limit:
            break
    return found


PRIORITIES = 100
"""Of a queue with more of them, the rest is not looked at for what has waited longest."""


def longest_waiting(txn: Txn, ledger: Ledger) -> float | None:
    """When the oldest was put of the jobs that are next in line, one for each priority (epoch seconds);
    None: nothing is pending.
    """
    put: list[float] = []
    with txn.cursor() as cursor:
        found = cursor.set_range(ledger.pending)
        while found and len(put) < PRIORITIES:
            key = cursor.key()
            if not key.startswith(ledger.pending):
                break
            put.append(rows.HEAD.unpack_from(cursor.value())[4])
            found = cursor.set_range(key[:11] + b"\xff" * 17)
    return min(put, default=None)


def latest_failed(txn: Txn, ledger: Ledger, limit: int) -> list[Found]:
    """Up to `limit` failed jobs, the one that failed last first."""
    with txn.cursor() as cursor:
        if cursor.set_range(ledger.failed_at + b"\xff" * 17):
            cursor.prev()
        else:
            cursor.last()
        keys_back = cursor.iterprev(values=False)
        found = []
        for key in islice(keys_back, limit):
            if not key.startswith(ledger.failed_at):
                break
            job = ledger.failed + key[11:]
            value = txn.get(job)
            assert value is not None
            found.append(Found(State.FAILED, job, value))
    return found
