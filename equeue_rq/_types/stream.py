"""How a stream is laid out.

The key's record holds the id that was given last. A short stream is whole in there, as a msgpack map of
ids and entries; once that is too large, each entry is an element, and stays one.

An id is 16 bytes, milliseconds and a sequence number, so that ids sort as they were given.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

import msgpack

from equeue_core.storage import scan
from equeue_rq._keyspace import Keyspace, Kind, Meta

WHOLE = 2048
"""Bytes that a whole stream has at most."""

_HEAD = struct.Struct(">16s16sQ")  # last id, greatest id deleted, how many were ever added
_ID = struct.Struct(">QQ")

MAX = (1 << 64) - 1
"""The greatest half of an id."""
FIRST_ID = b"\0" * 16
LAST_ID = b"\xff" * 16

Entry = tuple[bytes, list[bytes]]
"""An id; fields and values by turns."""


def make_id(milliseconds: int, sequence: int) -> bytes:
    """The id of these two numbers."""
    return _ID.pack(milliseconds, sequence)


def milliseconds_of(stream_id: bytes) -> int:
    """The first number of an id."""
    return int(_ID.unpack(stream_id)[0])


def show_id(stream_id: bytes) -> bytes:
    """An id as clients read it."""
    return b"%d-%d" % _ID.unpack(stream_id)


def next_id(stream_id: bytes) -> bytes | None:
    """The id behind another one; None: there is none."""
    number = int.from_bytes(stream_id, "big") + 1
    return None if number >> 128 else number.to_bytes(16, "big")


def previous_id(stream_id: bytes) -> bytes | None:
    """The id before another one; None: there is none."""
    number = int.from_bytes(stream_id, "big") - 1
    return None if number < 0 else number.to_bytes(16, "big")


class Stream:
    """A stream within a transaction. What was changed has to be saved.

    Parameters:
        db: its database.
        meta: its key.

    Attributes:
        last_id: the id that was given last.
        deleted_id: the greatest id that was deleted.
        added: how many entries were ever added.
    """

    __slots__ = ("_db", "_whole", "added", "deleted_id", "last_id", "meta")

    def __init__(self, db: Keyspace, meta: Meta) -> None:
        self._db = db
        self.meta = meta
        self.last_id, self.deleted_id, self.added = FIRST_ID, FIRST_ID, 0
        if meta.body:
            self.last_id, self.deleted_id, self.added = _HEAD.unpack_from(meta.body)
        self._whole: dict[bytes, list[bytes]] | None = None
        if not meta.key_id:
            raw = meta.body[_HEAD.size :]
            self._whole = msgpack.unpackb(raw) if raw else {}

    @classmethod
    def find(cls, db: Keyspace, name: bytes) -> Stream | None:
        """The stream; None if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        meta = db.of(name, Kind.STREAM)
        return None if meta is None else cls(db, meta)

    @classmethod
    def find_or_make(cls, db: Keyspace, name: bytes) -> Stream:
        """The stream; a new one, which is there once it is saved, if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        return cls(db, db.of_or_make(name, Kind.STREAM, whole=True))

    def __len__(self) -> int:
        return self.meta.count

    # Reading

    def between(self, low: bytes, high: bytes) -> Iterator[Entry]:
        """The entries from one id up to another, in order."""
        if self._whole is not None:
            for stream_id, fields in self._whole.items():
                if low <= stream_id <= high:
                    yield stream_id, fields
            return
        prefix = self.meta.elements
        for key, raw in scan(self._db.txn, prefix, prefix + low):
            stream_id = key[len(prefix) :]
            if stream_id > high:
                return
            yield stream_id, msgpack.unpackb(raw)

    def reversed(self, low: bytes, high: bytes) -> Iterator[Entry]:
        """The entries from one id up to another, from the last to the first."""
        if self._whole is not None:
            for stream_id in reversed(self._whole):
                if low <= stream_id <= high:
                    yield stream_id, self._whole[stream_id]
            return
        prefix = self.meta.elements
        with self._db.txn.cursor() as cursor:
            # The first key behind, which may not be of this stream, or the end.
            found = cursor.set_range(prefix + high + b"\0")
            if not (cursor.prev() if found else cursor.last()):
                return
            for key, raw in cursor.iterprev(True, True):
                if not key.startswith(prefix) or key[len(prefix) :] < low:
                    return
                yield key[len(prefix) :], msgpack.unpackb(raw)

    def first(self) -> Entry | None:
        """The first entry; None if there is none."""
        return next(self.between(FIRST_ID, LAST_ID), None)

    def last(self) -> Entry | None:
        """The last entry; None if there is none."""
        return next(self.reversed(FIRST_ID, LAST_ID), None)

    # Changing

    def append(self, stream_id: bytes, fields: list[bytes]) -> None:
        """Add an entry, whose id is greater than `last_id`."""
        if self._whole is None:
            self._db.txn.put(self.meta.elements + stream_id, msgpack.packb(fields))
        else:
            self._whole[stream_id] = fields
        self.last_id = stream_id
        self.added += 1
        self.meta.count += 1

    def remove(self, stream_id: bytes) -> bool:
        """Remove an entry; whether it was there."""
        if self._whole is None:
            found = self._db.txn.delete(self.meta.elements + stream_id)
        else:
            found = self._whole.pop(stream_id, None) is not None
        self.meta.count -= found
        return found

    def trim(self, length: int, before: bytes, limit: int) -> int:
        """Remove the oldest entries; how many.

        Parameters:
            length: as long as there are more than so many,
            before: and their ids are smaller than this.
            limit: how many at most; 0: all of them.
        """
        number = len(self) - length
        if limit:
            number = min(number, limit)
        if number <= 0:
            return 0
        doomed = []
        for stream_id, _ in islice(self.between(FIRST_ID, LAST_ID), number):
            if stream_id >= before:
                break
            doomed.append(stream_id)
        return sum(map(self.remove, doomed))

    def save(self) -> None:
        """Store the key's record, after changes."""
        head = _HEAD.pack(self.last_id, self.deleted_id, self.added)
        if self._whole is not None:
            packed = msgpack.packb(self._whole) if self._whole else b""
            if len(packed) > WHOLE:
                self._spread(self._whole)
            else:
                head += packed
        self.meta.body = head
        self._db.save(self.meta)

    def _spread(self, whole: dict[bytes, list[bytes]]) -> None:
        self._db.spread(self.meta)
        self._whole = None
        for stream_id, fields in whole.items():
            self._db.txn.put(self.meta.elements + stream_id, msgpack.packb(fields))
