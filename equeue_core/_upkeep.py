"""What rides on ordinary operations instead of a background thread, in bounded batches.

Due jobs become pending, expired ones are cancelled, dead owners' and expired leases' jobs go back,
and old ended jobs are removed. Every function takes a transaction and may be run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack

from equeue_core import _clock, _lookup
from equeue_core import _ledger as books
from equeue_core._ledger import Counts
from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core._store._queue_keys import Ledger
from equeue_core._store._scan import first_key, scan

if TYPE_CHECKING:
    from equeue_core._store import Environment, Txn

BATCH = 256
"""Jobs that one step of upkeep moves at most."""


# Due and expired jobs


def next_due(txn: Txn, ledger: Ledger) -> float | None:
    """When the next scheduled job is due (epoch seconds)."""
    key = first_key(txn, ledger.scheduled)
    return None if key is None else keys.from_ordered_float(key[3:11])


def next_deadline(txn: Txn, ledger: Ledger) -> float | None:
    """When the next lease ends (monotonic seconds)."""
    key = first_key(txn, ledger.lease)
    return None if key is None else keys.from_ordered_float(key[3:11])


def promote(txn: Txn, ledger: Ledger, counts: Counts) -> int:
    """Make scheduled jobs whose time has come pending, in the order of their times; how many."""
    limit = ledger.scheduled + keys.ordered_float(_clock.wall())
    number = 0
    for key, value in scan(txn, ledger.scheduled):
        if key[:11] > limit or number == BATCH:
            break
        number += 1
        txn.delete(key)
        txn.delete(ledger.index + key[11:])
        counts[rows.N_SCHEDULED] -= 1
        books.place_behind(txn, ledger, counts, rows.Row.unpack(value))
    return number


def expire(txn: Txn, ledger: Ledger, counts: Counts, width: int) -> int:
    """Cancel jobs that were not claimed within their ``expires_in``; how many."""
    now = _clock.wall()
    limit = ledger.expiry + keys.ordered_float(now)
    number = 0
    for key, _ in scan(txn, ledger.expiry):
        if key[:11] > limit or number == BATCH:
            break
        number += 1
        found = _lookup.find(txn, ledger, keys.U64.unpack(key[11:])[0])
        assert found is not None
        _cancel_expired(txn, ledger, counts, found, now, width)
    return number


def has_expired(txn: Txn, ledger: Ledger) -> bool:
    """Whether there are jobs that `expire` has not got to yet."""
    key = first_key(txn, ledger.expiry)
    return key is not None and key[:11] <= ledger.expiry + keys.ordered_float(_clock.wall())


def expire_holder(txn: Txn, ledger: Ledger, unique: str, width: int) -> None:
    """Cancel the job that has the unique key, if its time is over and nobody has noticed yet."""
    raw = txn.get(ledger.unique_key(unique))
    found = None if raw is None else _lookup.find(txn, ledger, keys.U64.unpack(raw)[0])
    if found is None or not _lookup.is_waiting(found):
        return
    now = _clock.wall()
    expires = rows.Row.unpack(found.value).extras.get("expires")
    if expires is not None and expires <= now:
        counts = books.load_counts(txn, ledger)
        _cancel_expired(txn, ledger, counts, found, now, width)
        books.save_counts(txn, ledger, counts)


def _cancel_expired(
    txn: Txn, ledger: Ledger, counts: Counts, found: _lookup.Found, now: float, width: int
) -> None:
    row = _lookup.take_waiting(txn, ledger, counts, found)
    books.add_error(row, {"at": now, "message": "expired before it was claimed"})
    books.place_cancelled(txn, ledger, counts, row, now, width)
    ledger.environment.bells.broadcast(ledger.id)


def wake_others(ledger: Ledger, counts: Counts) -> None:
    """Wake a sleeper for each job that is pending now: several may have become due at once."""
    if counts[rows.N_PENDING] and not counts[rows.PAUSED]:
        ledger.environment.bells.ring(ledger.id, counts[rows.N_PENDING])


# Jobs that come back


def expire_leases(txn: Txn, ledger: Ledger, counts: Counts) -> int:
    """Give jobs whose lease has ended back to their places; each spends a retry."""
    limit = ledger.lease + keys.ordered_float(_clock.monotonic())
    number = 0
    for key, _ in scan(txn, ledger.lease):
        if key[:11] > limit or number == BATCH:
            break
        value = txn.get(ledger.running + key[11:])
        assert value is not None
        _come_back(txn, ledger, counts, key[11:], value, "its lease ended")
        number += 1
    return number


def recover(txn: Txn, environment: Environment) -> int:
    """Give the jobs of dead owners back to their places; each spends a retry. Returns how many."""
    number = 0
    for key, value in scan(txn, keys.OWNER):
        (owner,) = keys.U64.unpack(key[3:])
        if environment.owners.is_alive(owner):
            continue
        number += _recover_owner(txn, environment, owner, msgpack.unpackb(value), BATCH - number)
        if number >= BATCH:
            break
    return number


def _recover_owner(
    txn: Txn, environment: Environment, owner: int, who: dict[str, Any], limit: int
) -> int:
    """The same for one dead owner. Its records go once nothing of it is left."""
    number = 0
    owner_key = keys.U64.pack(owner)
    slept_in = []
    for key, _ in scan(txn, keys.OWNER_QUEUE + owner_key):
        ledger = environment.ledger(keys.U16.unpack(key[11:])[0])
        slept_in.append(ledger.id)
        counts = books.load_counts(txn, ledger)
        for running, value in scan(txn, ledger.running):
            if value[:8] != owner_key:
                continue
            if number >= limit:
                books.save_counts(txn, ledger, counts)
                return number
            why = f"its worker (process {who.get('pid')} on {who.get('host')}) died"
            _come_back(txn, ledger, counts, running[3:], value, why)
            number += 1
        books.save_counts(txn, ledger, counts)
        txn.delete(key)
    txn.delete(keys.OWNER + owner_key)
    environment.owners.forget(owner)
    # It may have died in its sleep, and be counted among the sleepers.
    environment.bells.reset(slept_in)
    return number


def withdraw(txn: Txn, environment: Environment) -> bool:
    """Give this process's own jobs back to their places, no retry spent, and strike it off the record
    of owners. False: there are more, call again.
    """
    owner = environment.owners.owner_id
    if owner is None:
        return True
    owner_key = keys.U64.pack(owner)
    number = 0
    for key, _ in scan(txn, keys.OWNER_QUEUE + owner_key):
        ledger = environment.ledger(keys.U16.unpack(key[11:])[0])
        for running, value in scan(txn, ledger.running):
            if value[:8] != owner_key:
                continue
            if number == BATCH:
                return False
            number += 1
            job_id, attempt = keys.RUNNING_TAIL.unpack(running[3:])
            books.release(txn, ledger, books.Token(job_id, attempt, owner), None)
        txn.delete(key)
    txn.delete(keys.OWNER + owner_key)
    return True


def _come_back(
    txn: Txn, ledger: Ledger, counts: Counts, tail: bytes, value: bytes, why: str
) -> None:
    job_id, attempt = keys.RUNNING_TAIL.unpack(tail)
    owner = keys.U64.unpack(value[:8])[0]
    claim, row = books.unclaim(txn, ledger, counts, books.Token(job_id, attempt, owner))
    error = {"at": _clock.wall(), "message": why}
    books.retry(txn, ledger, counts, claim, row, error, 0.0, at_its_place=True)


# Ended jobs


def vacuum(txn: Txn, ledger: Ledger, counts: Counts, keep: float, limit: int = BATCH) -> int:
    """Remove jobs that were done or cancelled more than `keep` seconds ago; how many (at most
    `limit`).
    """
    before = _clock.wall() - keep
    number = 0
    for prefix, counter in ((ledger.done, rows.N_DONE), (ledger.cancelled, rows.N_CANCELLED)):
        if not counts[counter]:
            continue
        removed = _vacuum_kind(txn, prefix, before, limit - number)
        counts[counter] -= removed
        number += removed
    return number


def vacuum_all(
    txn: Txn, ledger: Ledger, counts: Counts, keep: float, keep_failed: float | None
) -> int:
    """`vacuum`, and remove jobs that failed more than `keep_failed` seconds ago (None: no matter when);
    how many (at most `BATCH`).
    """
    number = vacuum(txn, ledger, counts, keep)
    if keep_failed is not None and counts[rows.N_FAILED]:
        removed = _vacuum_failed(txn, ledger, _clock.wall() - keep_failed, BATCH - number)
        counts[rows.N_FAILED] -= removed
        number += removed
    return number


def _vacuum_failed(txn: Txn, ledger: Ledger, before: float, limit: int) -> int:
    until = ledger.failed_at + keys.ordered_float(before)
    removed = 0
    for key, _ in scan(txn, ledger.failed_at):
        if key[:11] > until or removed == limit:
            break
        txn.delete(key)
        txn.delete(ledger.failed + key[11:])
        removed += 1
    return removed


def _vacuum_kind(txn: Txn, prefix: bytes, before: float, limit: int) -> int:
    removed = 0
    with txn.cursor() as cursor:
        found = cursor.set_range(prefix)
        while found and removed < limit:
            key, value = cursor.item()
            if not key.startswith(prefix) or rows.END.unpack_from(value)[0] > before:
                break
            found = cursor.delete()
            removed += 1
    return removed
