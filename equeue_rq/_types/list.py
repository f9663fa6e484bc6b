"""How a list is laid out: an element for each entry, under a number.

The numbers are without gaps, unless entries were removed from the middle: then the gaps stay until the
ends reach them. The record's body has the first number and the last.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice

from equeue_core.storage import Cursor
from equeue_rq._keyspace import Keyspace, Kind, Meta

_U64 = struct.Struct(">Q")
_ENDS = struct.Struct(">QQ")
_MIDDLE = 1 << 63
"""The number of the first entry of a new list."""

_REMAKE = 64
"""From so many entries to remove on, a list that keeps fewer is made anew: the old one is swept later."""


class List:
    """A list within a transaction. What was changed has to be saved.

    Parameters:
        db: its database.
        meta: its key.
    """

    __slots__ = ("_db", "_first", "_last", "_prefix", "meta")

    def __init__(self, db: Keyspace, meta: Meta) -> None:
        self._db = db
        self.meta = meta
        self._prefix = meta.elements
        self._first, self._last = _ENDS.unpack(meta.body) if meta.body else (_MIDDLE, _MIDDLE - 1)

    @classmethod
    def find(cls, db: Keyspace, name: bytes) -> List | None:
        """The list; None if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        meta = db.of(name, Kind.LIST)
        return None if meta is None else cls(db, meta)

    @classmethod
    def find_or_make(cls, db: Keyspace, name: bytes) -> List:
        """The list; a new one, which is there once it is saved, if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        return cls(db, db.of_or_make(name, Kind.LIST))

    def __len__(self) -> int:
        return self.meta.count

    def save(self) -> None:
        """Store the key's record, after changes."""
        self.meta.body = _ENDS.pack(self._first, self._last)
        self._db.save(self.meta)

    # Looking

    def at(self, index: int) -> bytes | None:
        """The entry at this index, from the end if negative; None if there is none."""
        index = self._index(index)
        if not 0 <= index < self.meta.count:
            return None
        if self._is_dense:
            return self._db.txn.get(self._key(self._first + index))
        with self._db.txn.cursor() as cursor:
            self._seek(cursor, index)
            return cursor.value()

    def range(self, start: int, stop: int) -> list[bytes]:
        """The entries from one index to another, both included, from the end if negative."""
        start, stop = max(self._index(start), 0), min(self._index(stop), self.meta.count - 1)
        if start > stop:
            return []
        with self._db.txn.cursor() as cursor:
            self._seek(cursor, start)
            return list(islice(cursor.iternext(keys=False), stop - start + 1))

    def positions(
        self, value: bytes, backwards: bool = False, limit: int | None = None
    ) -> Iterator[int]:
        """The indexes of the entries equal to a value.

        Parameters:
            value: the entry.
            backwards: whether to begin at the end.
            limit: how many entries to look at, at most; None: all.
        """
        for index, (_, entry) in enumerate(islice(self._walk(backwards), limit)):
            if entry == value:
                yield self.meta.count - 1 - index if backwards else index

    # Changing

    def push(self, left: bool, values: Sequence[bytes]) -> None:
        """Put entries before the first or behind the last, one after the other."""
        put = self._db.txn.put
        if left:
            for value in values:
                self._first -= 1
                put(self._key(self._first), value)
        else:
            for value in values:
                self._last += 1
                put(self._key(self._last), value)
        self._pushed(len(values))

    def _pushed(self, number: int) -> None:
        self.meta.count += number
        self._db.signal(self.meta.name)

    def pop(self, left: bool) -> bytes:
        """Take the entry of one end; there has to be one."""
        number = self._first if left else self._last
        value = self._db.txn.pop(self._key(number))
        assert value is not None, "both ends are entries"
        dense = self._is_dense
        self.meta.count -= 1
        if not dense and self.meta.count:
            self._find_ends()
        elif left:
            self._first += 1
        else:
            self._last -= 1
        return value

    def pop_some(self, left: bool, number: int) -> list[bytes]:
        """Take so many entries of one end, or all there are."""
        taken = min(number, self.meta.count)
        if not taken:
            return []
        values = self.range(0, taken - 1) if left else self.range(-taken, -1)[::-1]
        self._drop(left, taken)
        return values

    def set(self, index: int, value: bytes) -> bool:
        """Replace the entry at this index, from the end if negative; False if there is none."""
        index = self._index(index)
        if not 0 <= index < self.meta.count:
            return False
        with self._db.txn.cursor() as cursor:
            self._seek(cursor, index)
            key = cursor.key()
        self._db.txn.put(key, value)
        return True

    def remove(self, value: bytes, number: int) -> int:
        """Remove entries equal to a value; how many.

        Parameters:
            value: the entry.
            number: how many at most, the first ones; negative: the last ones; 0: all.
        """
        found = (key for key, entry in self._walk(number < 0) if entry == value)
        keys = list(islice(found, abs(number) or None))
        for key in keys:
            self._db.txn.delete(key)
        self.meta.count -= len(keys)
        if keys and self.meta.count:
            self._find_ends()
        return len(keys)

    def trim(self, start: int, stop: int) -> None:
        """Keep only the entries from one index to another, both included, from the end if negative; it
        saves the list.
        """
        start, stop = max(self._index(start), 0), min(self._index(stop), self.meta.count - 1)
        kept = stop - start + 1
        if kept <= 0:
            self._db.delete(self.meta)
        elif self.meta.count - kept > max(kept, _REMAKE):
            self._remake(self.range(start, stop))
        else:
            right = self.meta.count - 1 - stop
            if start:
                self._drop(True, start)
            if right:
                self._drop(False, right)
            self.save()

    def insert(self, pivot: bytes, value: bytes, before: bool) -> bool:
        """Put an entry before or behind the first that is equal to `pivot`; False if there is none."""
        index = next(self.positions(pivot), None)
        if index is None:
            return False
        index += not before
        if index == 0:
            self.push(True, [value])
        elif index == self.meta.count:
            self.push(False, [value])
        else:
            self._make_room(index, value)
            self._pushed(1)
        return True

    # Numbers

    @property
    def _is_dense(self) -> bool:
        return bool(self._last - self._first + 1 == self.meta.count)

    def _key(self, number: int) -> bytes:
        return self._prefix + _U64.pack(number)

    def _number(self, key: bytes) -> int:
        found: int = _U64.unpack_from(key, len(self._prefix))[0]
        return found

    def _index(self, index: int) -> int:
        return index + self.meta.count if index < 0 else index

    def _seek(self, cursor: Cursor, index: int) -> None:
        """Go to the entry at this index, which is there."""
        if self._is_dense:
            cursor.set_key(self._key(self._first + index))
        elif 2 * index < self.meta.count:
            cursor.set_key(self._key(self._first))
            for _ in range(index):
                cursor.next()
        else:
            cursor.set_key(self._key(self._last))
            for _ in range(self.meta.count - 1 - index):
                cursor.prev()

    def _walk(self, backwards: bool) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from one end to the other."""
        with self._db.txn.cursor() as cursor:
            cursor.set_key(self._key(self._last if backwards else self._first))
            walk = cursor.iterprev() if backwards else cursor.iternext()
            yield from islice(walk, self.meta.count)

    def _find_ends(self) -> None:
        """Set the ends right, after entries were removed; there are some left."""
        with self._db.txn.cursor() as cursor:
            cursor.set_range(self._key(self._first))
            self._first = self._number(cursor.key())
            if not cursor.set_key(self._key(self._last)):
                if cursor.set_range(self._key(self._last)):
                    cursor.prev()
                else:  # nothing at all is behind it
                    cursor.last()
                self._last = self._number(cursor.key())

    def _drop(self, left: bool, number: int) -> None:
        """Remove so many entries of one end, that has them."""
        for key in [key for key, _ in islice(self._walk(not left), number)]:
            self._db.txn.delete(key)
        self.meta.count -= number
        if self.meta.count:
            self._find_ends()

    def _remake(self, values: list[bytes]) -> None:
        expires = self.meta.expires
        self._db.delete(self.meta)
        self.meta = self._db.make(self.meta.name, Kind.LIST)
        self._prefix = self.meta.elements
        self._first, self._last = _MIDDLE, _MIDDLE - 1
        self.push(False, values)
        self.save()
        if expires:
            self._db.expire(self.meta, expires)

    def _make_room(self, index: int, value: bytes) -> None:
        """Put an entry at this index, which is neither before the first nor behind the last."""
        left = 2 * index < self.meta.count
        step = -1 if left else 1
        with self._db.txn.cursor() as cursor:
            self._seek(cursor, index - 1 if left else index)
            number = self._number(cursor.key())
            moved: list[bytes] = []
            for key, entry in cursor.iterprev() if left else cursor.iternext():
                # Up to the next gap, or the end.
                if key != self._key(number + step * len(moved)):
                    break
                moved.append(entry)
        for distance, entry in enumerate(moved, 1):
            self._db.txn.put(self._key(number + step * distance), entry)
        self._db.txn.put(self._key(number), value)
        self._first = min(self._first, number + step * len(moved))
        self._last = max(self._last, number + step * len(moved))
