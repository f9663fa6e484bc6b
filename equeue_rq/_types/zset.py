"""How a sorted set is laid out.

A small one is whole in its key's record: a msgpack list of members and scores, in their order. Once that
is too large, there are two elements for each member, and stay: its score by its name, and one that sorts
by score and member.

LMDB's keys are too short for long members: of these, the key that sorts holds the start and a hash, and
its value holds the member. Neighbours that start alike are put in order when they are read.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

import msgpack

from equeue_core.storage import from_ordered_float, ordered_float
from equeue_rq._keyspace import Keyspace, Kind, Meta
from equeue_rq._types import _members

WHOLE = 1024
"""Bytes that a whole one has at most."""

_FEW = 256
"""Up to so many members are all looked at to pick some."""

_BY_NAME = b"m"
"""+ place, name: the score, and the member if it is too long for a key."""
_BY_SCORE = b"s"
"""+ score, member (or its start and hash): nothing, or the member."""

_PLAIN = 440
"""Bytes of a member that a key holds."""
_SORTS = 8 + _PLAIN
"""Bytes of a key that sort as the entry does: score and member."""
_CHUNK = 64

_SCORE = struct.Struct(">d")

Entry = tuple[float, bytes]
"""Score and member: these tuples sort as the set does."""

Cut = Entry | None
"""A place in the order: before the first entry that is not smaller than this; None: behind all."""

FIRST: Cut = (-math.inf, b"")
"""The place before all entries."""


def before_score(score: float) -> Cut:
    """The place before all members with this score."""
    return score, b""


def behind_score(score: float) -> Cut:
    """The place behind all members with this score."""
    return None if score == math.inf else (math.nextafter(score, math.inf), b"")


class SortedSet:
    """A sorted set within a transaction. What was changed has to be saved.

    Parameters:
        db: its database.
        meta: its key.
    """

    __slots__ = ("_db", "_order", "_whole", "meta")

    def __init__(self, db: Keyspace, meta: Meta) -> None:
        self._db = db
        self.meta = meta
        self._whole: dict[bytes, float] | None = None
        self._order: list[Entry] | None = None
        if not meta.key_id:
            flat = msgpack.unpackb(meta.body) if meta.body else ()
            self._whole = dict(zip(flat[::2], flat[1::2], strict=True))

    @classmethod
    def find(cls, db: Keyspace, name: bytes) -> SortedSet | None:
        """The sorted set; None if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        meta = db.of(name, Kind.ZSET)
        return None if meta is None else cls(db, meta)

    @classmethod
    def find_or_make(cls, db: Keyspace, name: bytes) -> SortedSet:
        """The sorted set; a new one, which is there once it is saved, if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        return cls(db, db.of_or_make(name, Kind.ZSET, whole=True))

    @classmethod
    def replace(cls, db: Keyspace, name: bytes, scores: dict[bytes, float]) -> None:
        """Have the key be a sorted set of these members, whatever it was. None: there is no key."""
        old = db.find(name)
        if old is not None:
            db.delete(old)
        if scores:
            made = cls(db, db.make(name, Kind.ZSET, whole=True))
            for member, score in scores.items():
                made.put(member, score, None)
            made.save()
            db.signal(name)

    # Reading

    @property
    def is_whole(self) -> bool:
        """Whether it is in its key's record."""
        return self._whole is not None

    def __len__(self) -> int:
        return self.meta.count

    def score(self, member: bytes) -> float | None:
        """The score of a member; None if it is none."""
        if self._whole is not None:
            return self._whole.get(member)
        raw = self._db.txn.get(self._name_key(member))
        return None if raw is None else float(_SCORE.unpack_from(raw)[0])

    def between(self, low: Cut, high: Cut) -> Iterator[Entry]:
        """The entries between two places, in order."""
        if self._whole is not None:
            order = self._sorted()
            return islice(order, _at(order, low), _at(order, high))
        if high is None:
            return self._from(low)
        return takewhile(lambda entry: entry < high, self._from(low))

    def reversed(self, low: Cut, high: Cut) -> Iterator[Entry]:
        """The entries between two places, from the last to the first."""
        if self._whole is not None:
            order = self._sorted()
            return iter(order[_at(order, low) : _at(order, high)][::-1])
        return takewhile(lambda entry: low is not None and entry >= low, self._down_from(high))

    def by_rank(self, start: int, stop: int) -> list[Entry]:
        """The entries with ranks from `start` up to (without) `stop`, in order; walks from the nearer
        end.
        """
        if start >= stop:
            return []
        if self._whole is not None:
            return self._sorted()[start:stop]
        size = len(self)
        if stop <= size - start:
            return list(islice(self._from(FIRST), start, stop))
        found = list(islice(self._down_from(None), size - stop, size - start))
        found.reverse()
        return found

    def rank(self, member: bytes, score: float) -> int:
        """How many entries there are before that of a member with its score."""
        entry = (score, member)
        if self._whole is not None:
            return bisect_left(self._sorted(), entry)
        if len(member) <= _PLAIN:
            return self._count_before(_sort_key(score, member))
        start = _sort_key(score, member[:_PLAIN])
        alike = takewhile(lambda other: other < entry, self._from((score, member[:_PLAIN] + b"\0")))
        return self._count_before(start + b"\0") + sum(1 for _ in alike)

    def count_between(self, low: Cut, high: Cut) -> int:
        """How many entries there are between two places."""
        if low == FIRST and high is None:
            return len(self)
        if self._whole is not None:
            order = self._sorted()
            return max(0, _at(order, high) - _at(order, low))
        return sum(1 for _ in self.between(low, high))

    def scores(self) -> dict[bytes, float]:
        """All scores by members, in order."""
        return {member: score for score, member in self.between(FIRST, None)}

    def pick(self) -> Entry:
        """An entry by chance. There must be one."""
        if self._whole is not None or len(self) <= _FEW:
            return _members.chance.choice(list(self.between(FIRST, None)))
        return _named(*_members.pick(self._db.txn, self.meta.elements + _BY_NAME))

    def sample(self, number: int) -> list[Entry]:
        """So many different entries by chance, or all."""
        if len(self) <= _FEW or number > len(self) // 4:
            return _members.sample(list(self.between(FIRST, None)), number)
        found: dict[Entry, None] = {}
        while len(found) < number:
            found[self.pick()] = None
        return list(found)

    def page(self, cursor: int, number: int) -> tuple[int, list[Entry]]:
        """About so many entries, and the cursor for the next ones; 0: there are none."""
        if self._whole is not None:
            return 0, self._sorted()
        prefix = self.meta.elements + _BY_NAME
        next_cursor, found = _members.page(self._db.txn, prefix, cursor, number)
        return next_cursor, [_named(*each) for each in found]

    # Changing

    def put(self, member: bytes, score: float, old: float | None) -> None:
        """Give a member its score.

        Parameters:
            member, score: not NaN.
            old: the score that it has; None: it is none yet.
        """
        score += 0.0  # there is no minus zero
        if old is None:
            self.meta.count += 1
        if self._whole is None:
            if old is not None:
                self._db.txn.delete(self._sort_key(old, member))
            self._put(member, score)
        else:
            self._whole[member] = score
            self._order = None

    def remove(self, member: bytes) -> bool:
        """Remove a member; whether it was one."""
        if self._whole is not None:
            found = self._whole.pop(member, None) is not None
            self._order = None
        else:
            raw = self._db.txn.pop(self._name_key(member))
            found = raw is not None
            if raw is not None:
                self._db.txn.delete(self._sort_key(_SCORE.unpack_from(raw)[0], member))
        self.meta.count -= found
        return found

    def remove_all(self, entries: Iterable[Entry]) -> int:
        """Remove members and store the key's record; how many were removed."""
        removed = sum(self.remove(member) for _, member in list(entries))
        if removed:
            self.save()
        return removed

    def save(self) -> None:
        """Store the key's record, after changes."""
        if self._whole is not None:
            flat: list[bytes | float] = []
            for score, member in self._sorted():
                flat += member, score
            self.meta.body = msgpack.packb(flat)
            if len(self.meta.body) > WHOLE:
                self._spread(self._whole)
        self._db.save(self.meta)

    # Whole

    def _sorted(self) -> list[Entry]:
        if self._order is None:
            assert self._whole is not None
            self._order = sorted(zip(self._whole.values(), self._whole, strict=True))
        return self._order

    # In elements

    def _spread(self, whole: dict[bytes, float]) -> None:
        self._db.spread(self.meta)
        self.meta.body = b""
        self._whole = None
        for member, score in whole.items():
            self._put(member, score)

    def _put(self, member: bytes, score: float) -> None:
        txn = self._db.txn
        kept = member if _members.is_hashed(member) else b""
        txn.put(self._name_key(member), _SCORE.pack(score) + kept)
        txn.put(self._sort_key(score, member), member if len(member) > _PLAIN else b"")

    def _name_key(self, member: bytes) -> bytes:
        return self.meta.elements + _BY_NAME + _members.member_key(member)

    def _sort_key(self, score: float, member: bytes) -> bytes:
        return self.meta.elements + _BY_SCORE + _sort_key(score, member)

    def _from(self, low: Cut) -> Iterator[Entry]:
        """The entries from a place on."""
        if low is None:
            return
        prefix = self.meta.elements + _BY_SCORE
        # Those that start like a long member may be on either side of it.
        start = prefix + _sort_key(low[0], low[1][:_PLAIN])
        with self._db.txn.cursor() as cursor:
            if cursor.set_range(start):
                for entry in _ordered(_under(prefix, cursor.iternext(True, True)), False):
                    if entry >= low:
                        yield entry

    def _down_from(self, high: Cut) -> Iterator[Entry]:
        """The entries before a place, backwards."""
        prefix = self.meta.elements + _BY_SCORE
        if high is None:
            start = prefix + b"\xff" * 9  # behind all scores
        else:
            start = prefix + _sort_key(high[0], high[1][:_PLAIN])
            start += b"\xff" * 33 if len(high[1]) > _PLAIN else b""  # behind all that start alike
        with self._db.txn.cursor() as cursor:
            if cursor.prev() if cursor.set_range(start) else cursor.last():
                for entry in _ordered(_under(prefix, cursor.iterprev(True, True)), True):
                    if high is None or entry < high:
                        yield entry

    def _count_before(self, tail: bytes) -> int:
        """How many keys are before this one; walks to the nearer end."""
        prefix = self.meta.elements + _BY_SCORE
        size = len(self)
        with self._db.txn.cursor() as up, self._db.txn.cursor() as down:
            above = up.iternext(True, False) if up.set_range(prefix + tail) else iter(())
            there = down.prev() if down.set_range(prefix + tail) else down.last()
            below = down.iterprev(True, False) if there else iter(())
            for walked in range(0, size + 1, _CHUNK):
                number, more = _next_keys(below, prefix)
                if not more:
                    return walked + number
                number, more = _next_keys(above, prefix)
                if not more:
                    return size - walked - number
        raise AssertionError("one of the ends was reached")


def _at(order: list[Entry], cut: Cut) -> int:
    return len(order) if cut is None else bisect_left(order, cut)


def _sort_key(score: float, member: bytes) -> bytes:
    if len(member) > _PLAIN:
        member = member[:_PLAIN] + hashlib.sha256(member).digest()
    return ordered_float(score) + member


def _named(tail: bytes, raw: bytes) -> Entry:
    return _SCORE.unpack_from(raw)[0], _members.name_of(tail, raw[_SCORE.size :])


def _under(prefix: bytes, entries: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    start = len(prefix)
    for key, value in entries:
        if not key.startswith(prefix):
            return
        yield key[start:], value


def _ordered(raw: Iterable[tuple[bytes, bytes]], backwards: bool) -> Iterator[Entry]:
    """Entries by what their keys end with; long members that start alike in the order of the whole."""
    alike: list[Entry] = []
    start = b""
    for tail, value in raw:
        if alike and not (len(tail) > _SORTS and tail[:_SORTS] == start):
            yield from sorted(alike, reverse=backwards)
            alike = []
        if len(tail) > _SORTS:
            start = tail[:_SORTS]
            alike.append((from_ordered_float(tail[:8]), value))
        else:
            yield from_ordered_float(tail[:8]), tail[8:]
    yield from sorted(alike, reverse=backwards)


def _next_keys(keys: Iterator[bytes], prefix: bytes) -> tuple[int, bool]:
    """How many of the next few keys start with this, and whether there may be more."""
    chunk = list(islice(keys, _CHUNK))
    if len(chunk) == _CHUNK and chunk[-1].startswith(prefix):
        return _CHUNK, True
    return sum(key.startswith(prefix) for key in chunk), False
