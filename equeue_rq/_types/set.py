"""How a set is laid out.

A small set is whole in its key's record: a msgpack list in the order in which the members came. Once
that is too large, each member is an element, and stays one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgpack

from equeue_rq._keyspace import Keyspace, Kind, Meta
from equeue_rq._types import _members

WHOLE = 1024
"""Bytes that a whole set has at most."""

_FEW = 256
"""Up to so many members are all looked at to pick some."""


class MemberSet:
    """A set within a transaction. What was changed has to be saved.

    Parameters:
        db: its database.
        meta: its key.
    """

    __slots__ = ("_db", "_whole", "meta")

    def __init__(self, db: Keyspace, meta: Meta) -> None:
        self._db = db
        self.meta = meta
        self._whole: dict[bytes, None] | None = None
        if not meta.key_id:
            self._whole = dict.fromkeys(msgpack.unpackb(meta.body)) if meta.body else {}

    @classmethod
    def find(cls, db: Keyspace, name: bytes) -> MemberSet | None:
        """The set; None if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        meta = db.of(name, Kind.SET)
        return None if meta is None else cls(db, meta)

    @classmethod
    def find_or_make(cls, db: Keyspace, name: bytes) -> MemberSet:
        """The set; a new one, which is there once it is saved, if there is no such key.

        Raises:
            WrongType: the key holds another type.
        """
        return cls(db, db.of_or_make(name, Kind.SET, whole=True))

    @classmethod
    def replace(cls, db: Keyspace, name: bytes, members: list[bytes]) -> None:
        """Have the key be a set of these members, whatever it was. No members: there is no key."""
        old = db.find(name)
        if old is not None:
            db.delete(old)
        if members:
            made = cls(db, db.make(name, Kind.SET, whole=True))
            for member in members:
                made.add(member)
            made.save()

    # Reading

    @property
    def is_whole(self) -> bool:
        """Whether it is in its key's record."""
        return self._whole is not None

    def __len__(self) -> int:
        return self.meta.count

    def __contains__(self, member: bytes) -> bool:
        if self._whole is not None:
            return member in self._whole
        key = self.meta.elements + _members.member_key(member)
        return self._db.txn.get(key) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.all())

    def all(self) -> list[bytes]:
        """The members."""
        if self._whole is not None:
            return list(self._whole)
        return _members.names(self._db.txn, self.meta.elements, 0)

    def pick(self) -> bytes:
        """A member by chance. The set must not be empty."""
        if self._whole is not None or len(self) <= _FEW:
            return _members.chance.choice(self.all())
        return _members.name_of(*_members.pick(self._db.txn, self.meta.elements))

    def sample(self, number: int) -> list[bytes]:
        """So many different members by chance, or all."""
        if len(self) <= _FEW or number > len(self) // 4:
            return _members.sample(self.all(), number)
        found: dict[bytes, None] = {}
        while len(found) < number:
            found[self.pick()] = None
        return list(found)

    def page(self, cursor: int, number: int) -> tuple[int, list[bytes]]:
        """About so many members, and the cursor for the next ones; 0: there are none."""
        if self._whole is not None:
            return 0, list(self._whole)
        next_cursor, found = _members.page(self._db.txn, self.meta.elements, cursor, number)
        return next_cursor, [_members.name_of(*entry) for entry in found]

    # Changing

    def add(self, member: bytes) -> bool:
        """Add a member; whether it is new."""
        whole = self._whole
        if whole is None:
            new = self._put(member)
        else:
            new = member not in whole
            whole[member] = None
        self.meta.count += new
        return new

    def discard(self, member: bytes) -> bool:
        """Remove a member; whether it was there."""
        whole = self._whole
        if whole is None:
            found = self._db.txn.delete(self.meta.elements + _members.member_key(member))
        elif found := member in whole:
            del whole[member]
        self.meta.count -= found
        return found

    def save(self) -> None:
        """Store the key's record, after changes."""
        whole = self._whole
        if whole is not None:
            self.meta.body = msgpack.packb(list(whole))
            if len(self.meta.body) > WHOLE:
                self._spread(whole)
        self._db.save(self.meta)

    def _spread(self, whole: dict[bytes, None]) -> None:
        self._db.spread(self.meta)
        self.meta.body = b""
        self._whole = None
        for member in whole:
            self._put(member)

    def _put(self, member: bytes) -> bool:
        kept = member if _members.is_hashed(member) else b""
        key = self.meta.elements + _members.member_key(member)
        return bool(self._db.txn.put(key, kept, overwrite=False))
