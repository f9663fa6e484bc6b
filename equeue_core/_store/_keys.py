"""Keys of the one LMDB database that a store is: the only place that knows their bytes.

Every key starts with a two-byte queue id and a kind byte. Id 0 is the store itself. Within a queue
the kinds are ordered so that what every operation touches lies side by side: the counters, then the
running jobs, then the head of the pending ones. On a short queue these share one page, so that a
claim rewrites one leaf; the bulky history (ended, failed) lies before them.
"""

from __future__ import annotations

import hashlib
import struct

U16 = struct.Struct(">H")
U32 = struct.Struct(">I")
U64 = struct.Struct(">Q")
F64 = struct.Struct(">d")
TWO_U64 = struct.Struct(">QQ")
RUNNING_TAIL = struct.Struct(">QI")  # job id, attempt

CANCELLED = b"c"  # + bucket, job id
ENDED = b"e"  # done: + bucket, job id
FAILED = b"f"  # + job id
FAILED_AT = b"g"  # + when it failed, job id
INDEX = b"i"  # + job id: where a job is whose key cannot be computed from its id
LEASE = b"l"  # + deadline, job id, attempt
COUNTERS = b"n"
RUNNING = b"o"  # "owned": + job id, attempt
PENDING = b"p"  # + priority, order
SCHEDULED = b"s"  # + due time, job id
UNIQUE = b"u"  # + unique key (or its hash)
EXPIRY = b"x"  # + expiry time, job id

STORE = U16.pack(0)
FORMAT = STORE + b"f"
NEXT_OWNER = STORE + b"a"
NEXT_QUEUE = STORE + b"b"
QUEUE_BY_NAME = STORE + b"n"  # + name (or its hash) -> queue id
QUEUE_BY_ID = STORE + b"q"  # + queue id -> queue row
OWNER = STORE + b"o"  # + owner id -> owner row
OWNER_QUEUE = STORE + b"w"  # + owner id, queue id: where an owner has claimed

FIRST_QUEUE = 0x100
"""Ids below have bells only, those of the adapters' key spaces (see `_spaces.bell`)."""
MAX_QUEUES = 0xFF00
"""Ids from here on are the adapters' key spaces."""

_MAX_PLAIN = 400
"""Longest name kept as it is; LMDB's limit for a whole key is 511 bytes."""


def name_key(name: bytes) -> bytes:
    """`name` if it fits a key, otherwise its hash. The first byte keeps the two apart."""
    if len(name) <= _MAX_PLAIN:
        return b"=" + name
    return b"#" + hashlib.sha256(name).digest()


def ordered_float(value: float) -> bytes:
    """Eight bytes that sort as the numbers do (negatives flipped, as IEEE 754 totalOrder has
    it).
    """
    (bits,) = U64.unpack(F64.pack(value + 0.0))  # + 0.0: minus zero sorts as zero
    return U64.pack(bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63)


def from_ordered_float(raw: bytes) -> float:
    """The number that `ordered_float` packed."""
    (bits,) = U64.unpack(raw)
    bits = bits ^ (1 << 63) if bits >> 63 else bits ^ 0xFFFFFFFFFFFFFFFF
    result: float = F64.unpack(U64.pack(bits))[0]
    return result
