"""The books of one queue: where its jobs are, and every change of a job's state.

A job's row, its index entries and the queue's counters change here and nowhere else. Every function
takes a transaction, refuses (by raising) before it writes, and may be run again in another
transaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from equeue_core import _clock
from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core._store._queue_keys import Ledger
from equeue_core.errors import ClaimLost, DuplicateJob

if TYPE_CHECKING:
    from equeue_core._store import Cursor, Txn

Counts = list[int]

_serials = itertools.count(1)
_head_pack = rows.HEAD.pack
_head_unpack = rows.HEAD.unpack_from
_head_size = rows.HEAD.size
_claim_pack = rows.CLAIM.pack
_claim_size = rows.CLAIM.size
_end_pack = rows.END.pack
_count_pack = rows.COUNTERS.pack
_count_unpack = rows.COUNTERS.unpack
_u32 = keys.U32.pack
_u64 = keys.U64.pack
_running_tail = keys.RUNNING_TAIL.pack

_NO_DEADLINE = bytes(8)
_PLAIN_KEY = 19
"""Length of the pending key of a job that was never put back: prefix, priority, job id."""

MAX_ERRORS = 10
"""Attempts whose errors are kept with a job: the first and the latest."""


class Spec(NamedTuple):
    """How a job is to be put: its priority, and (None = not given) when it is due, when it expires
    (epoch seconds), its unique key and its own max_retries.
    """

    priority: float = 0.0
    due: float | None = None
    expires: float | None = None
    unique: str | None = None
    max_retries: int | None = None


PLAIN = Spec()
"""No options."""


class Claimer(NamedTuple):
    """Who claims: owner id, seconds of lease (None: as long as the owner lives), retries allowed, and
    what to make of each claim: a function of job id, attempt, retries, enqueued at, priority,
    encoded payload, serial.
    """

    owner: int
    lease_time: float | None
    max_retries: int
    make: Callable[[int, int, int, float, float, bytes, int], Any]


class Token(NamedTuple):
    """What a completion must show: the claim's job, attempt and owner."""

    job_id: int
    attempt: int
    owner: int


# Counters


def load_counts(txn: Txn, ledger: Ledger) -> Counts:
    """The queue's counters, indexed by the N_... constants."""
    raw = txn.get(ledger.counters)
    return list(_count_unpack(rows.NO_COUNTERS if raw is None else raw))


def save_counts(txn: Txn, ledger: Ledger, counts: Counts) -> None:
    """Store them; packing refuses a negative counter."""
    txn.put(ledger.counters, _count_pack(*counts))


# Putting


def put(txn: Txn, ledger: Ledger, payload: bytes) -> int:
    """Append a job without options; return its id."""
    counts = load_counts(txn, ledger)
    job_id = counts[rows.N_TOTAL] = counts[rows.N_TOTAL] + 1
    counts[rows.N_PENDING] += 1
    place = _u64(job_id)
    txn.put(ledger.pending_zero + place, _head_pack(0, 0, 0, job_id, _clock.wall(), 0.0) + payload)
    save_counts(txn, ledger, counts)
    ledger.environment.bells.ring(ledger.id)
    return job_id


def put_many(txn: Txn, ledger: Ledger, payloads: list[bytes], spec: Spec) -> list[int]:
    """Put jobs in order, all in the same way; return their ids. A unique key is for a single job.

    Raises:
        DuplicateJob: an unfinished job has the unique key.
    """
    if spec.unique is not None:
        _refuse_duplicate(txn, ledger, spec.unique)
    counts = load_counts(txn, ledger)
    now = _clock.wall()
    first = counts[rows.N_TOTAL] + 1
    job_ids = list(range(first, first + len(payloads)))
    if spec == PLAIN:
        prefix = ledger.pending_zero
        with txn.cursor() as cursor:
            cursor.putmulti(
                [
                    (prefix + _u64(job_id), _head_pack(0, 0, 0, job_id, now, 0.0) + payload)
                    for job_id, payload in zip(job_ids, payloads, strict=True)
                ]
            )
        counts[rows.N_PENDING] += len(payloads)
    else:
        for job_id, payload in zip(job_ids, payloads, strict=True):
            _put_spec(txn, ledger, counts, rows.Row(job_id, now, spec.priority, payload), spec)
    counts[rows.N_TOTAL] += len(payloads)
    save_counts(txn, ledger, counts)
    # A job that is due later is news for one sleeper: it will wake in time for it.
    later = spec.due is not None and spec.due > now
    ledger.environment.bells.ring(ledger.id, 1 if later else len(payloads))
    return job_ids


def _put_spec(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row, spec: Spec) -> None:
    tail = _u64(row.job_id)
    if spec.max_retries is not None:
        row.extras["max_retries"] = spec.max_retries
    if spec.unique is not None:
        row.extras["unique"] = spec.unique
        txn.put(ledger.unique_key(spec.unique), tail)
    if spec.expires is not None:
        row.extras["expires"] = spec.expires
        txn.put(ledger.expiry + keys.ordered_float(spec.expires) + tail, b"")
        counts[rows.N_EXPIRING] += 1
    if spec.due is not None and spec.due > row.enqueued_at:
        place_scheduled(txn, ledger, counts, row, spec.due)
    else:
        place_pending(txn, ledger, counts, row)


def _refuse_duplicate(txn: Txn, ledger: Ledger, unique: str) -> None:
    raw = txn.get(ledger.unique_key(unique))
    if raw is not None:
        (job_id,) = keys.U64.unpack(raw)
        raise DuplicateJob(
            f"job {job_id} with the unique key {unique!r} is not finished yet", job_id
        )


# Placing a row (each adds to its state's counter)


def place_pending(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row) -> None:
    """Make `row` pending at the place that its order says."""
    key = ledger.pending + row.place
    txn.put(key, row.pack())
    if row.order or row.priority != 0.0:
        txn.put(ledger.index + _u64(row.job_id), key[2:])
    counts[rows.N_PENDING] += 1


def place_behind(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row) -> None:
    """Make `row` pending behind all its equals."""
    counts[rows.N_REQUEUED] += 1
    row.order = keys.TWO_U64.pack(counts[rows.N_TOTAL], counts[rows.N_REQUEUED])
    place_pending(txn, ledger, counts, row)


def place_scheduled(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row, due: float) -> None:
    """Make `row` scheduled for `due` (epoch seconds)."""
    key = ledger.scheduled + keys.ordered_float(due) + _u64(row.job_id)
    txn.put(key, row.pack())
    txn.put(ledger.index + _u64(row.job_id), key[2:])
    counts[rows.N_SCHEDULED] += 1


def place_failed(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row, now: float) -> None:
    """Make `row` FAILED."""
    forget_unique(txn, ledger, row)
    tail = _u64(row.job_id)
    txn.put(ledger.failed + tail, rows.pack_end(now, b"", row.pack()))
    txn.put(ledger.failed_at + keys.ordered_float(now) + tail, b"")
    counts[rows.N_FAILED] += 1


def place_cancelled(
    txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row, now: float, width: int
) -> None:
    """Make `row` CANCELLED. `width`: see `bucket`."""
    forget_unique(txn, ledger, row)
    if not width:
        return
    key = ledger.cancelled + bucket(now, width) + _u64(row.job_id)
    txn.put(key, rows.pack_end(now, b"", row.pack()))
    counts[rows.N_CANCELLED] += 1


def bucket(now: float, width: int) -> bytes:
    """The start of the time bucket, `width` seconds wide, in which an ended job is filed.

    Jobs are filed by bucket and id: vacuum finds the oldest first, and a job is found by its id in
    a few steps (one for each bucket), without an index entry of its own. A width of 0 says that they
    are not kept: then nothing is filed.
    """
    return keys.U32.pack(int(now) // width * width)


def forget_unique(txn: Txn, ledger: Ledger, row: rows.Row) -> None:
    unique = row.extras.get("unique")
    if unique is not None:
        txn.delete(ledger.unique_key(unique))


def forget_expiry(txn: Txn, ledger: Ledger, counts: Counts, row: rows.Row) -> None:
    """Drop the row's expiry: it counts only until the first claim."""
    expires = row.extras.pop("expires", None)
    if expires is not None:
        txn.delete(ledger.expiry + keys.ordered_float(expires) + _u64(row.job_id))
        counts[rows.N_EXPIRING] -= 1


def remember_unique(txn: Txn, ledger: Ledger, row: rows.Row) -> None:
    """Take the row's unique key again, for a job that comes back to life."""
    unique = row.extras.get("unique")
    if unique is not None:
        _refuse_duplicate(txn, ledger, unique)
        txn.put(ledger.unique_key(unique), _u64(row.job_id))


# Claiming


def claim(txn: Txn, ledger: Ledger, counts: Counts, claimer: Claimer, limit: int) -> list[Any]:
    """Move up to `limit` pending jobs, in order, to running; what the claimer makes of each.

    Changes `counts`, which the caller saves.
    """
    claimed: list[Any] = []
    moved: list[tuple[bytes, bytes]] = []
    owner, lease_time, max_retries, make = claimer
    now = _clock.wall()
    deadline = 0.0 if lease_time is None else _clock.monotonic() + lease_time
    prefix = ledger.pending
    serial = next(_serials)
    usual = _claim_pack(owner, serial, now, deadline, max_retries)
    cursor = txn.cursor()
    found = cursor.set_range(prefix)
    while found and len(claimed) < limit:
        key, value = cursor.item()
        if key[:3] != prefix:
            break
        flags, attempts, retries, job_id, enqueued_at, priority = _head_unpack(value)
        found = cursor.delete()
        start = _head_size
        claim_prefix = usual
        if flags:
            value, start, own = _claim_special(txn, ledger, counts, value)
            if own is not None:
                claim_prefix = _claim_pack(owner, serial, now, deadline, own)
        if len(key) != _PLAIN_KEY or priority:
            txn.delete(ledger.index + _u64(job_id))
        attempts += 1
        tail = _running_tail(job_id, attempts)
        moved.append(
            (
                ledger.running + tail,
                claim_prefix + value[:1] + _u32(attempts) + value[5:],  # flags, attempts, the rest
            )
        )
        if deadline:
            moved.append((ledger.lease + keys.ordered_float(deadline) + tail, b""))
        payload = value[start:]
        claimed.append(make(job_id, attempts, retries, enqueued_at, priority, payload, serial))
    cursor.putmulti(moved)
    cursor.close()
    number = len(claimed)
    counts[rows.N_PENDING] -= number
    counts[rows.N_RUNNING] += number
    if deadline:
        counts[rows.N_LEASED] += number
    return claimed


def _claim_special(
    txn: Txn, ledger: Ledger, counts: Counts, value: bytes
) -> tuple[bytes, int, int | None]:
    """A row with order or extras at its claim: the row, where its payload starts, its own
    max_retries.
    """
    row = rows.Row.unpack(value)
    forget_expiry(txn, ledger, counts, row)
    packed = row.pack()
    return packed, len(packed) - len(row.payload), row.extras.get("max_retries")


# Completing


def ack(txn: Txn, ledger: Ledger, token: Token, result: bytes, width: int) -> None:
    """Make a claimed job DONE. `width`: see `bucket`.

    Raises:
        ClaimLost: the claim is not held any more.
    """
    _refuse_stranger(ledger, token)
    key = ledger.running + _running_tail(token[0], token[1])
    value = take_running(txn, key, token)
    counts = load_counts(txn, ledger)
    now = _clock.wall()
    if value[rows.FLAGS_IN_CLAIM] or value[24:32] != _NO_DEADLINE:
        _leave_running(txn, ledger, counts, key, value)
    if width:
        txn.put(
            ledger.done + bucket(now, width) + key[3:11],
            _end_pack(now, len(result)) + result + value[_claim_size:],
        )
        counts[rows.N_DONE] += 1
    counts[rows.N_RUNNING] -= 1
    save_counts(txn, ledger, counts)
    ledger.environment.bells.broadcast(ledger.id)


def ack_many(txn: Txn, ledger: Ledger, tokens: list[Token], width: int) -> None:
    """`ack` for several claims; refused as a whole."""
    taken: list[tuple[bytes, bytes]] = []
    prefix, now = ledger.running, _clock.wall()
    cursor = txn.cursor()
    try:
        for token in tokens:
            _refuse_stranger(ledger, token)
            key = prefix + _running_tail(token[0], token[1])
            taken.append((key, take_running(cursor, key, token)))
    except ClaimLost:
        cursor.putmulti(taken)
        raise
    counts = load_counts(txn, ledger)
    for key, value in taken:
        if value[rows.FLAGS_IN_CLAIM] or value[24:32] != _NO_DEADLINE:
            _leave_running(txn, ledger, counts, key, value)
    if width:
        done = ledger.done + bucket(now, width)
        end = _end_pack(now, 0)
        cursor.putmulti([(done + key[3:11], end + value[_claim_size:]) for key, value in taken])
        counts[rows.N_DONE] += len(taken)
    cursor.close()
    counts[rows.N_RUNNING] -= len(taken)
    save_counts(txn, ledger, counts)
    ledger.environment.bells.broadcast(ledger.id)


def _leave_running(txn: Txn, ledger: Ledger, counts: Counts, key: bytes, value: bytes) -> None:
    """Drop the lease and the unique key, if any, of a job that was running and is done."""
    if value[rows.FLAGS_IN_CLAIM] & rows.EXTRAS:
        forget_unique(txn, ledger, rows.Row.unpack(value, _claim_size))
    _forget_lease(txn, ledger, counts, key, rows.Claim.unpack(value))


def _forget_lease(
    txn: Txn, ledger: Ledger, counts: Counts, running: bytes, claim: rows.Claim
) -> None:
    """Drop the lease, if any, of the job with the key `running`."""
    if claim.deadline:
        txn.delete(ledger.lease + keys.ordered_float(claim.deadline) + running[3:])
        counts[rows.N_LEASED] -= 1


def take_running(source: Txn | Cursor, key: bytes, token: Token) -> bytes:
    """Remove and return a running job's value, if `token` holds it; ClaimLost otherwise."""
    value = source.pop(key)
    if value is None:
        raise claim_lost(token)
    if value[:8] != _u64(token[2]):
        source.put(key, value)
        raise claim_lost(token)
    return value


def _held_value(txn: Txn, key: bytes, token: Token) -> bytes | None:
    value = txn.get(key)
    return value if value is not None and value[:8] == _u64(token.owner) else None


def _refuse_stranger(ledger: Ledger, token: Token) -> None:
    """A child that inherited the record by a fork is not the one who claimed.

    Raises:
        ClaimLost: this process is not the claim's owner.
    """
    if token[2] != ledger.environment.owners.owner_id:
        raise claim_lost(token)


def claim_lost(token: Token) -> ClaimLost:
    """The refusal of a late or double completion."""
    return ClaimLost(
        f"job {token.job_id} is not held by this record (delivery {token.attempt}) any more: it was "
        "completed or given back before, its lease ran out, or the record crossed a fork; nothing changed"
    )


def unclaim(txn: Txn, ledger: Ledger, counts: Counts, token: Token) -> tuple[rows.Claim, rows.Row]:
    """Take a job out of running, to be placed elsewhere by the caller.

    Raises:
        ClaimLost: the claim is not held any more.
    """
    key = ledger.running + _running_tail(token.job_id, token.attempt)
    value = take_running(txn, key, token)
    claim = rows.Claim.unpack(value)
    _forget_lease(txn, ledger, counts, key, claim)
    counts[rows.N_RUNNING] -= 1
    return claim, rows.Row.unpack(value, _claim_size)


def release(txn: Txn, ledger: Ledger, token: Token, delay: float | None) -> None:
    """Give a job back to its place, or after `delay` seconds, without spending a retry."""
    _refuse_stranger(ledger, token)
    counts = load_counts(txn, ledger)
    _, row = unclaim(txn, ledger, counts, token)
    if delay:
        place_scheduled(txn, ledger, counts, row, _clock.wall() + delay)
    else:
        place_pending(txn, ledger, counts, row)
    save_counts(txn, ledger, counts)
    ledger.environment.bells.ring(ledger.id)


def give_back(txn: Txn, ledger: Ledger, token: Token, serial: int) -> None:
    """`release` for a record that was dropped; nothing if just this claim is not held (any
    more).
    """
    key = ledger.running + _running_tail(token.job_id, token.attempt)
    value = _held_value(txn, key, token)
    if value is not None and rows.Claim.unpack(value).serial == serial:
        release(txn, ledger, token, None)


def nack(
    txn: Txn, ledger: Ledger, token: Token, error: dict[str, Any] | None, delay: float
) -> None:
    """Spend a retry: back behind its equals after `delay` seconds, or FAILED when none is left."""
    _refuse_stranger(ledger, token)
    counts = load_counts(txn, ledger)
    claim, row = unclaim(txn, ledger, counts, token)
    retry(txn, ledger, counts, claim, row, error, delay, at_its_place=False)
    save_counts(txn, ledger, counts)


def retry(
    txn: Txn,
    ledger: Ledger,
    counts: Counts,
    claim: rows.Claim,
    row: rows.Row,
    error: dict[str, Any] | None,
    delay: float,
    at_its_place: bool,
) -> None:
    """Count a retry for a job taken out of running and place it; rings."""
    now = _clock.wall()
    row.retries += 1
    if error is not None:
        add_error(row, error)
    bells = ledger.environment.bells
    if row.retries > claim.max_retries:
        place_failed(txn, ledger, counts, row, now)
        bells.broadcast(ledger.id)
        return
    if delay > 0:
        place_scheduled(txn, ledger, counts, row, now + delay)
    elif at_its_place:
        place_pending(txn, ledger, counts, row)
    else:
        place_behind(txn, ledger, counts, row)
    bells.ring(ledger.id)


def fail(txn: Txn, ledger: Ledger, token: Token, error: dict[str, Any] | None) -> None:
    """Make a claimed job FAILED at once."""
    _refuse_stranger(ledger, token)
    counts = load_counts(txn, ledger)
    _, row = unclaim(txn, ledger, counts, token)
    if error is not None:
        add_error(row, error)
    place_failed(txn, ledger, counts, row, _clock.wall())
    save_counts(txn, ledger, counts)
    ledger.environment.bells.broadcast(ledger.id)


def extend(txn: Txn, ledger: Ledger, token: Token, seconds: float) -> None:
    """Let the claim's lease end `seconds` from now.

    Raises:
        ClaimLost: the claim is not held any more.
    """
    _refuse_stranger(ledger, token)
    key = ledger.running + _running_tail(token.job_id, token.attempt)
    value = _held_value(txn, key, token)
    if value is None:
        raise claim_lost(token)
    claim = rows.Claim.unpack(value)
    counts = load_counts(txn, ledger)
    _forget_lease(txn, ledger, counts, key, claim)
    claim.deadline = _clock.monotonic() + seconds
    counts[rows.N_LEASED] += 1
    save_counts(txn, ledger, counts)
    txn.put(ledger.lease + keys.ordered_float(claim.deadline) + key[3:], b"")
    txn.put(key, claim.pack() + value[_claim_size:])


def add_error(row: rows.Row, error: dict[str, Any]) -> None:
    """Note an attempt's error with the job; of many, the first and the latest are kept."""
    errors = row.extras.setdefault("errors", [])
    errors.append({"attempt": row.attempts, **error})
    if len(errors) > MAX_ERRORS:
        del errors[1]
