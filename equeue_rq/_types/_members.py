"""Elements by their names, in an order that means nothing: so a cursor is a number, whatever the names
are, and one can be picked at random without a walk.
"""

from __future__ import annotations

import random
import struct
from typing import TypeVar
from zlib import crc32

from equeue_core.storage import Cursor, Txn, name_key, scan

T = TypeVar("T")

_PLACE = struct.Struct(">I")
_PLACES = 1 << 32
_STEPS = 16
"""Neighbours among which one is picked: where there are gaps between the places, the next one would be
picked too often.
"""

chance = random.SystemRandom()
"""Not the generator that the application may have seeded, nor one that a fork copies."""


def member_key(name: bytes) -> bytes:
    """What an element's key ends with."""
    return _PLACE.pack(crc32(name)) + name_key(name)


def is_hashed(name: bytes) -> bool:
    """Whether the key holds no name, so that the value must."""
    return name_key(name)[:1] == b"#"


def name_of(tail: bytes, kept: bytes) -> bytes:
    """The name, by what the key ends with, and the name kept in the value if there is one."""
    return kept if tail[4:5] == b"#" else tail[5:]


def page(
    txn: Txn, prefix: bytes, cursor: int, number: int
) -> tuple[int, list[tuple[bytes, bytes]]]:
    """At least so many elements (what their keys end with, and their values), and the cursor for the
    next ones; 0: there are none.
    """
    found: list[tuple[bytes, bytes]] = []
    if cursor >= _PLACES:
        return 0, found
    last = b""
    for key, value in scan(txn, prefix, prefix + _PLACE.pack(cursor)):
        tail = key[len(prefix) :]
        if len(found) >= number and tail[:4] != last:
            return int(_PLACE.unpack(tail[:4])[0]), found
        last = tail[:4]
        found.append((tail, value))
    return 0, found


def pick(txn: Txn, prefix: bytes) -> tuple[bytes, bytes]:
    """One of the elements (there must be one): what its key ends with, and its value."""
    with txn.cursor() as cursor:
        _seek(cursor, prefix, _PLACE.pack(chance.randrange(_PLACES)))
        for _ in range(chance.randrange(_STEPS)):
            if not (cursor.next() and cursor.key().startswith(prefix)):
                _seek(cursor, prefix, b"")
        key, value = cursor.item()
        return key[len(prefix) :], value


def _seek(cursor: Cursor, prefix: bytes, place: bytes) -> None:
    if not (cursor.set_range(prefix + place) and cursor.key().startswith(prefix)):
        cursor.set_range(prefix)


def names(txn: Txn, prefix: bytes, kept_at: int) -> list[bytes]:
    """All names.

    Parameters:
        kept_at: where the name is in the values, if the keys do not hold it.
    """
    start = len(prefix)
    found = []
    with txn.cursor() as cursor:
        if cursor.set_range(prefix):
            for key, value in cursor.iternext(True, True):
                if not key.startswith(prefix):
                    break
                found.append(name_of(key[start:], value[kept_at:]))
    return found


def sample(everything: list[T], number: int) -> list[T]:
    """So many different ones, or all."""
    return everything if number >= len(everything) else chance.sample(everything, number)
