"""Jobs as they are looked up: a snapshot, which no longer changes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgpack

from equeue_core import _clock
from equeue_core._codec import is_from_outside
from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core.errors import PayloadError


class State(str, enum.Enum):
    """Where a job is in its life. Members are strings: ``State.DONE == "done"``."""

    PENDING = "pending"
    """Waiting for a consumer."""
    SCHEDULED = "scheduled"
    """Waiting for its time: a delay, or the back-off after a nack."""
    RUNNING = "running"
    """Claimed by a consumer."""
    DONE = "done"
    """Acknowledged; kept for the queue's ``vacuum_interval``."""
    FAILED = "failed"
    """Out of retries, failed on purpose, or undecodable; kept until requeued or purged, or for the
    queue's ``keep_failed``.
    """
    CANCELLED = "cancelled"
    """Cancelled or expired before it ran; kept for the queue's ``vacuum_interval``."""

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"there is no state {value!r}: it is one of {', '.join(cls)}")


@dataclass(frozen=True)
class JobError:
    """What went wrong in one attempt.

    Attributes:
        attempt: number of the delivery, 1 for the first; 0 if the job was never delivered.
        at: when it was noted, in epoch seconds.
        message: the exception's type and text, or the reason that was given; more than one line, if that
            has more.
        traceback: the formatted traceback, or an empty string.
    """

    attempt: int
    at: float
    message: str
    traceback: str = ""


@dataclass(frozen=True)
class Job:
    """A job as it was stored at the moment it was looked up.

    Attributes:
        job_id: its number in the queue, from 1 on.
        queue: the queue's name.
        state: where it was.
        payload_bytes: the payload as the codec encoded it.
        priority: smaller runs first.
        attempts: deliveries so far.
        retries: how many of them were nacked, crashed or ran out of their lease.
        max_retries: its own limit; None means the consuming queue's.
        enqueued_at: when it was put, in epoch seconds.
        due_at: when it becomes pending, in epoch seconds, while it is scheduled.
        expires_at: until when it must have been claimed, in epoch seconds.
        unique: its unique key.
        claimed_at: when it was claimed, in epoch seconds, while it runs.
        deadline: when its lease ends, in epoch seconds, while it runs under one.
        owner: id of the process that runs it (see ``Store.owners``).
        finished_at: when it was done, failed or cancelled, in epoch seconds.
        errors: one for each attempt that failed; of many, the first and the latest nine.
    """

    job_id: int
    queue: str
    state: State
    payload_bytes: bytes = field(repr=False)
    priority: float = 0.0
    attempts: int = 0
    retries: int = 0
    max_retries: int | None = None
    enqueued_at: float = 0.0
    due_at: float | None = None
    expires_at: float | None = None
    unique: str | None = None
    claimed_at: float | None = None
    deadline: float | None = None
    owner: int | None = None
    finished_at: float | None = None
    errors: tuple[JobError, ...] = ()
    _result_bytes: bytes = field(default=b"", repr=False)
    _key: bytes = field(default=b"", repr=False, compare=False)
    _decode: Callable[[bytes], Any] = field(default=msgpack.unpackb, repr=False, compare=False)

    @property
    def payload(self) -> Any:
        """What was put.

        Raises:
            PayloadError: the codec cannot decode the stored bytes (see ``payload_bytes``).
        """
        return self._decode(self.payload_bytes)

    @property
    def result(self) -> Any:
        """What was given to ``ack(result=...)``; None for anything else."""
        return decode_result(self._result_bytes)


def encode_result(value: Any) -> bytes:
    """A result as stored: nothing for None, else msgpack.

    Raises:
        PayloadError: msgpack cannot encode it.
    """
    if value is None:
        return b""
    try:
        return bytes(msgpack.packb(value))
    except Exception as error:
        if is_from_outside(msgpack.packb, value):
            raise
        raise PayloadError(
            f"the result cannot be stored: {error}; give ack() plain data (None, bool, numbers, str, "
            "bytes, lists, dicts)"
        ) from error


def decode_result(raw: bytes) -> Any:
    """The value of a stored result."""
    return msgpack.unpackb(raw, strict_map_key=False) if raw else None


def from_store(
    state: State, key: bytes, value: bytes, queue: str, decode: Callable[[bytes], Any]
) -> Job:
    """The job that `key` and `value` hold."""
    details: dict[str, Any] = {}
    if state in (State.PENDING, State.SCHEDULED):
        row = rows.Row.unpack(value)
        if state is State.SCHEDULED:
            details["due_at"] = keys.from_ordered_float(key[3:11])
    elif state is State.RUNNING:
        claim = rows.Claim.unpack(value)
        row = rows.Row.unpack(value, rows.CLAIM.size)
        details["owner"] = claim.owner
        details["claimed_at"] = claim.claimed_at
        if claim.deadline:
            details["deadline"] = _clock.wall() + claim.deadline - _clock.monotonic()
    else:
        details["finished_at"], details["_result_bytes"], row = rows.unpack_end(value)
    extras = row.extras
    return Job(
        job_id=row.job_id,
        queue=queue,
        state=state,
        payload_bytes=row.payload,
        priority=row.priority,
        attempts=row.attempts,
        retries=row.retries,
        max_retries=extras.get("max_retries"),
        enqueued_at=row.enqueued_at,
        expires_at=extras.get("expires"),
        unique=extras.get("unique"),
        errors=tuple(JobError(**error) for error in extras.get("errors", ())),
        _key=key,
        _decode=decode,
        **details,
    )
