"""How a hash is laid out.

A small hash is whole in its key's record: a msgpack map, in which a number stands for a large value that
is an element of its own. Once the map is too large, each field is an element, and stays one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice

import msgpack

from equeue_rq._keyspace import Keyspace, Kind, Meta
from equeue_rq._types import _members

WHOLE = 1900
"""Bytes that the map of a small hash has at most: a record with more does not fit into a page with
another. Up to there a hash of 17 fields is made in half the time, read in two thirds, and a field of
it set in no more than if it were split; from 2.1 kB on, setting a field takes longer.
"""

LARGE = 512
"""Bytes from which on a value is not in the map."""

_FEW = 256
"""Up to so many fields are all looked at to pick some."""

_U32 = struct.Struct(">I")


class Hash:
    """A hash within a transaction. What was changed has to be saved.

    Parameters:
        db: its database.
        meta: its key.
    """

    __slots__ = ("_db", "_fields", "meta")

    def __init__(self, db: Keyspace, meta: Meta) -> None:
        self._db = db
        self.meta = meta
        self._fields: dict[bytes, bytes | int] | None = None
        if meta.body:
            self._fields = msgpack.unpackb(meta.body, raw=True)
        elif not meta.count:
            self._fields = {}

    @classmethod
    def find(cls, db: Keyspace, name: bytes) -> Hash | None:
        """The hash; None if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        meta = db.of(name, Kind.HASH)
        return None if meta is None else cls(db, meta)

    @classmethod
    def find_or_make(cls, db: Keyspace, name: bytes) -> Hash:
        """The hash; a new one, which is there once it is saved, if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        return cls(db, db.of_or_make(name, Kind.HASH, whole=True))

    @property
    def is_whole(self) -> bool:
        """Whether it is in its key's record."""
        return self._fields is not None

    def get(self, field: bytes) -> bytes | None:
        """The value; None if there is no such field."""
        if self._fields is None:
            return self._read(field)
        value = self._fields.get(field)
        return self._read(field) if isinstance(value, int) else value

    def __contains__(self, field: bytes) -> bool:
        if self._fields is None:
            return self._read(field) is not None
        return field in self._fields

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Fields and values: in the order in which they came, if the hash is whole."""
        if self._fields is None:
            yield from self._elements()
            return
        for field, value in self._fields.items():
            if isinstance(value, int):
                found = self._read(field)
                assert found is not None, "a large value is an element"
                yield field, found
            else:
                yield field, value

    def page(self, cursor: int, number: int) -> tuple[int, list[tuple[bytes, bytes]]]:
        """About so many fields and values, and the cursor for the next ones; 0: there are none."""
        if self._fields is not None:
            return 0, list(self.items())
        txn, prefix = self._db.txn, self.meta.elements
        next_cursor, found = _members.page(txn, prefix, cursor, number)
        return next_cursor, [_unpack(*entry) for entry in found]

    def pick(self, number: int = 1) -> list[tuple[bytes, bytes]]:
        """So many fields by chance, the same ones again perhaps, and their values."""
        if self._fields is not None or self.meta.count <= _FEW:
            return _members.chance.choices(list(self.items()), k=number)
        txn, prefix = self._db.txn, self.meta.elements
        return [_unpack(*_members.pick(txn, prefix)) for _ in range(number)]

    def sample(self, number: int) -> list[tuple[bytes, bytes]]:
        """So many different fields by chance, or all, and their values."""
        if self.meta.count <= _FEW or number > self.meta.count // 4:
            everything = list(self.items())
            number = min(number, len(everything))
            return _members.chance.sample(everything, number)
        found: dict[bytes, bytes] = {}
        while len(found) < number:
            found.update(self.pick())
        return list(found.items())

    def fields(self) -> Iterable[bytes]:
        """The fields, in the order of `items`."""
        if self._fields is None:
            return (field for field, _ in self._elements())
        return self._fields

    def set(self, field: bytes, value: bytes) -> bool:
        """Give a field its value; whether the field is new."""
        fields = self._fields
        if fields is None:
            new = self._write(field, value)
        else:
            old = fields.get(field)
            new = old is None
            if len(value) >= LARGE:
                self._write(field, value)
                fields[field] = len(value)
            else:
                if isinstance(old, int):
                    self._remove(field)
                fields[field] = value
        self.meta.count += new
        return new

    def delete(self, field: bytes) -> bool:
        """Remove a field; whether it was there."""
        if self._fields is None:
            found = self._remove(field)
        else:
            old = self._fields.pop(field, None)
            found = old is not None
            if isinstance(old, int):
                self._remove(field)
        self.meta.count -= found
        return found

    def save(self) -> None:
        """Store the key's record, after changes."""
        fields = self._fields
        if fields is not None:
            self.meta.body = msgpack.packb(fields)
            if len(self.meta.body) > WHOLE:
                self._split(fields)
        self._db.save(self.meta)

    def _split(self, fields: dict[bytes, bytes | int]) -> None:
        for field, value in fields.items():
            if not isinstance(value, int):
                self._write(field, value)
        self._fields = None
        self.meta.body = b""

    # Elements: the value, behind the field if that is too long for a key.

    def _elements(self) -> Iterator[tuple[bytes, bytes]]:
        prefix = self.meta.elements
        length = len(prefix)
        with self._db.txn.cursor() as cursor:
            cursor.set_range(prefix)
            for key, raw in islice(cursor.iternext(), self.meta.count):
                yield _unpack(key[length:], raw)

    def _read(self, field: bytes) -> bytes | None:
        raw = self._db.txn.get(self.meta.elements + _members.member_key(field))
        return (
            raw if raw is None or not _members.is_hashed(field) else raw[_U32.size + len(field) :]
        )

    def _write(self, field: bytes, value: bytes) -> bool:
        if not self.meta.key_id:
            self._db.spread(self.meta)
        key = self.meta.elements + _members.member_key(field)
        if _members.is_hashed(field):
            value = _U32.pack(len(field)) + field + value
        if self._db.txn.put(key, value, overwrite=False):
            return True
        self._db.txn.put(key, value)
        return False

    def _remove(self, field: bytes) -> bool:
        return self._db.txn.delete(self.meta.elements + _members.member_key(field))


def _unpack(tail: bytes, raw: bytes) -> tuple[bytes, bytes]:
    """Field and value, by what the key ends with, and what is in the element."""
    if tail[4:5] != b"#":
        return tail[5:], raw
    end = _U32.size + _U32.unpack_from(raw)[0]
    return raw[_U32.size : end], raw[end:]
