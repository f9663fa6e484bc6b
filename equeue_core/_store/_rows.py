"""Values of the store: how a job, a claim, an ended job and a queue's counters are packed.

A job row is a fixed head, then (by flag) its order and a msgpack map of rare fields, then the
payload. It moves as a whole from key to key while the job changes state; a claim or an end is a
prefix of it, so that an ordinary completion copies bytes and parses nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import msgpack

from equeue_core._store._keys import U32, U64, ordered_float

HEAD = struct.Struct(">BIIQdd")  # flags, attempts, retries, job id, enqueued at, priority
CLAIM = struct.Struct(
    ">QQddi"
)  # owner, serial, claimed at (wall), deadline (monotonic, 0 = none), max_retries
END = struct.Struct(">dI")  # ended at (wall), length of the result; then the result, then the row

EXTRAS = 1
"""Flag: a length and a msgpack map follow the head (and order)."""
ORDER = 2
"""Flag: 16 bytes of order follow the head; without it the job id is the order."""

FLAGS_IN_CLAIM = CLAIM.size
"""Offset of the flags byte in a running job's value."""

COUNTERS = struct.Struct(">11Q")
NO_COUNTERS = COUNTERS.pack(*([0] * 11))
(
    N_PENDING,
    N_SCHEDULED,
    N_RUNNING,
    N_DONE,
    N_FAILED,
    N_CANCELLED,
    N_TOTAL,
    N_REQUEUED,
    N_LEASED,
    N_EXPIRING,
    PAUSED,
) = range(11)

PRIORITY_ZERO = ordered_float(0.0)


@dataclass
class Row:
    """A job row, unpacked.

    ``order`` is 8 bytes (the job id: the place where it was first put) or 16 (the highest id at the
    time it was put back, and a running number), so that what comes back stands behind what was
    there.
    """

    job_id: int
    enqueued_at: float
    priority: float
    payload: bytes
    attempts: int = 0
    retries: int = 0
    order: bytes = b""
    extras: dict[str, Any] = field(default_factory=dict)

    def pack(self) -> bytes:
        flags = (EXTRAS if self.extras else 0) | (ORDER if self.order else 0)
        parts = [
            HEAD.pack(
                flags,
                self.attempts,
                self.retries,
                self.job_id,
                self.enqueued_at,
                self.priority,
            ),
            self.order,
        ]
        if self.extras:
            extras = msgpack.packb(self.extras)
            parts += [U32.pack(len(extras)), extras]
        parts.append(self.payload)
        return b"".join(parts)

    @classmethod
    def unpack(cls, raw: bytes, offset: int = 0) -> Row:
        flags, attempts, retries, job_id, enqueued_at, priority = HEAD.unpack_from(raw, offset)
        offset += HEAD.size
        order = b""
        extras: dict[str, Any] = {}
        if flags & ORDER:
            order = raw[offset : offset + 16]
            offset += 16
        if flags & EXTRAS:
            (length,) = U32.unpack_from(raw, offset)
            offset += 4
            extras = msgpack.unpackb(raw[offset : offset + length], strict_map_key=False)
            offset += length
        payload = raw[offset:]
        return cls(job_id, enqueued_at, priority, payload, attempts, retries, order, extras)

    @property
    def place(self) -> bytes:
        """What follows the queue's pending prefix in this job's pending key."""
        return ordered_float(self.priority) + (self.order or U64.pack(self.job_id))


@dataclass
class Claim:
    """The prefix of a running job's value.

    ``serial`` numbers the claims of one owner: it tells a claim from one that was rolled back.
    """

    owner: int
    serial: int
    claimed_at: float
    deadline: float
    max_retries: int

    def pack(self) -> bytes:
        return CLAIM.pack(self.owner, self.serial, self.claimed_at, self.deadline, self.max_retries)

    @classmethod
    def unpack(cls, raw: bytes) -> Claim:
        return cls(*CLAIM.unpack_from(raw))


def pack_end(ended_at: float, result: bytes, row: bytes) -> bytes:
    """The value of a job that ended (done, failed or cancelled)."""
    return END.pack(ended_at, len(result)) + result + row


def unpack_end(raw: bytes) -> tuple[float, bytes, Row]:
    """When it ended, its result, its row."""
    ended_at, length = END.unpack_from(raw)
    offset = END.size + length
    return ended_at, raw[END.size : offset], Row.unpack(raw, offset)
