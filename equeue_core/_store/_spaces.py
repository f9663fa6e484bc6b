"""The adapters' key spaces: who owns which id, and how entries and their expiry times are laid out.

A space is what the store keeps under one id from `MAX_QUEUES` on. The two kinds of key here are those
of `Entries`; an adapter may lay out others of its own beside them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from enum import IntEnum
from zlib import crc32

from equeue_core._store import _keys as keys
from equeue_core._store._scan import scan
from equeue_core._store._txn import Txn


class SpaceId(IntEnum):
    """Who owns which id. The store has bells for fifteen."""

    DRAMATIQ_RESULTS = keys.MAX_QUEUES
    DRAMATIQ_LIMITS = keys.MAX_QUEUES + 1
    DRAMATIQ_EVENTS = keys.MAX_QUEUES + 2
    RQ = keys.MAX_QUEUES + 3


VALUE = b"v"
"""+ key (or its hash): when it expires (infinity: never), the value."""
EXPIRY = b"x"
"""+ when it expires, key (or its hash): nothing."""

HEAD = struct.Struct(">d")
BELLS = 16
"""Broadcast bells of a space. Its keys share them, so a change wakes one in so many of the waiters."""

_TIMED = 3 + keys.F64.size
"""Length of an expiry entry's key up to its time."""


def bell(space_id: int, key: bytes) -> int:
    """The queue id whose broadcast bell rings for a key.

    These ids lie below those of the queues: the file that counts sleepers is given room from its start
    up to the highest bell that was ever looked at.
    """
    return 1 + BELLS * (space_id - keys.MAX_QUEUES) + crc32(key) % BELLS


def key_prefix(space_id: int) -> bytes:
    """What every key of a space starts with."""
    return keys.U16.pack(space_id)


class Entries:
    """The entries of one space: bytes by bytes, each with the time at which it expires, if any."""

    __slots__ = ("_expiry", "_values")

    def __init__(self, space_id: int) -> None:
        prefix = key_prefix(space_id)
        self._values = prefix + VALUE
        self._expiry = prefix + EXPIRY

    def get(self, txn: Txn, key: bytes, now: float) -> bytes | None:
        """The value; None if there is none, or it has expired."""
        raw = txn.get(self._values + keys.name_key(key))
        if raw is None:
            return None
        (expires,) = HEAD.unpack_from(raw)
        return None if expires <= now else raw[HEAD.size :]

    def put(self, txn: Txn, key: bytes, value: bytes, expires: float) -> None:
        """Store the value, in place of another if there is one. `expires`: epoch seconds."""
        name = keys.name_key(key)
        old = txn.replace(self._values + name, HEAD.pack(expires) + value)
        self._forget_expiry(txn, name, old)
        if expires < math.inf:
            txn.put(self._expiry + keys.ordered_float(expires) + name, b"")

    def delete(self, txn: Txn, key: bytes) -> None:
        """Remove the entry, if there is one."""
        name = keys.name_key(key)
        self._forget_expiry(txn, name, txn.pop(self._values + name))

    def _forget_expiry(self, txn: Txn, name: bytes, old: bytes | None) -> None:
        if old is not None:
            (expires,) = HEAD.unpack_from(old)
            if expires < math.inf:
                txn.delete(self._expiry + keys.ordered_float(expires) + name)

    def remove_expired(self, txn: Txn, now: float, limit: int) -> int:
        """Remove up to `limit` entries that have expired, the oldest first; how many."""
        until = self._expiry + keys.ordered_float(now)
        number = 0
        for key, _ in scan(txn, self._expiry):
            if key[:_TIMED] > until or number == limit:
                break
            txn.delete(key)
            txn.delete(self._values + key[_TIMED:])
            number += 1
        return number

    def problems(self, txn: Txn) -> Iterator[str]:
        """What does not fit together: one sentence for each."""
        for key, raw in scan(txn, self._values):
            if len(raw) < HEAD.size:
                yield f"the entry at {key.hex()} is cut short"
                continue
            (expires,) = HEAD.unpack_from(raw)
            listed = self._expiry + keys.ordered_float(expires) + key[3:]
            if expires < math.inf and txn.get(listed) is None:
                yield f"the expiry of the entry at {key.hex()} is not listed"
        for key, _ in scan(txn, self._expiry):
            entry = txn.get(self._values + key[_TIMED:], b"")
            if entry[: HEAD.size] != HEAD.pack(keys.from_ordered_float(key[3:_TIMED])):
                yield f"an expiry is listed that no entry has ({key.hex()})"


def space_ids(txn: Txn) -> list[int]:
    """The ids of the spaces that hold anything."""
    found = []
    with txn.cursor() as cursor:
        there = cursor.set_range(keys.U16.pack(keys.MAX_QUEUES))
        while there:
            (space_id,) = keys.U16.unpack(cursor.key()[:2])
            found.append(space_id)
            there = space_id < 0xFFFF and cursor.set_range(keys.U16.pack(space_id + 1))
    return found
