"""The keys of one database: what type each is, when it expires, and where its elements are.

In the store, a key is a record of its own (`Meta`), and its elements are entries under a number that
the key was given when it was made. So it is renamed in one step, and deleted in one step, too: its
elements are removed later, a few with each transaction that writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from equeue_core.storage import Cursor, Space, SpaceId, Txn, key_prefix, name_key, scan
from equeue_rq._messages import CommandError, WrongType

_PREFIX = key_prefix(SpaceId.RQ)

META = _PREFIX + b"m"
"""+ database, name (or its hash): the key's record."""
ELEMENT = _PREFIX + b"e"
"""+ key id, what its type wants: an element."""
EXPIRY = _PREFIX + b"t"
"""+ when it expires, database, name (or its hash): nothing."""
GARBAGE = _PREFIX + b"g"
"""+ key id: elements that belong to no key any more."""
NEXT_ID = _PREFIX + b"n"
"""The next key id."""
SCRIPT = _PREFIX + b"s"
"""+ SHA-1: a script's text."""

_U16 = struct.Struct(">H")
_U64 = struct.Struct(">Q")
_RECORD = struct.Struct(">BQQQQI")  # kind, stamp, key id, expires, count, length of a hashed name

DATABASES = 16
"""How many databases there are."""

_SWEPT = 64
"""Elements without a key that a transaction removes at most."""
_EXPIRED = 16
"""Expired keys that a transaction removes at most."""


class Kind(IntEnum):
    """The types, by the numbers that stand for them in the store."""

    STRING = 1
    LIST = 2
    SET = 3
    ZSET = 4
    HASH = 5
    STREAM = 6


@dataclass(slots=True)
class Meta:
    """A key's record.

    Attributes:
        name: the key.
        kind: its type.
        stamp: the transaction that changed it last; 0 before it is stored.
        key_id: under which number its elements are; 0: it has none outside of `body`.
        expires: when it expires, in epoch milliseconds; 0: never.
        count: how many elements it has; a key of 0 is not stored (but a string or a stream).
        body: what its type keeps in the record itself.
    """

    name: bytes
    kind: Kind
    stamp: int
    key_id: int
    expires: int
    count: int
    body: bytes

    @property
    def elements(self) -> bytes:
        """What the keys of its elements start with."""
        return ELEMENT + _U64.pack(self.key_id)


class Keyspace:
    """One database within one transaction.

    Parameters:
        txn: the transaction.
        space: the adapter's space, for bells.
        number: which database.
        now: the transaction's time, in epoch milliseconds.
        writes: whether the transaction may write.
    """

    __slots__ = ("_meta", "now", "number", "space", "txn", "writes")

    def __init__(self, txn: Txn, space: Space, number: int, now: int, writes: bool) -> None:
        self.txn = txn
        self.space = space
        self.number = number
        self.now = now
        self.writes = writes
        self._meta = META + _U16.pack(number)

    def other(self, number: int) -> Keyspace:
        """Another database in the same transaction.

        Raises:
            CommandError: there is none of this number.
        """
        if not 0 <= number < DATABASES:
            raise CommandError("ERR DB index is out of range")
        return Keyspace(self.txn, self.space, number, self.now, self.writes)

    # Keys

    def find(self, name: bytes) -> Meta | None:
        """The key; None if there is none, or it has expired."""
        key = self._meta + name_key(name)
        raw = self.txn.get(key)
        if raw is None:
            return None
        meta = _unpack(name, raw)
        if meta.expires and meta.expires <= self.now:
            if self.writes:
                self.delete(meta)
            return None
        return meta

    def of(self, name: bytes, kind: Kind) -> Meta | None:
        """The key, if it is of this type; None if there is none.

        Raises:
            WrongType: it is of another one.
        """
        meta = self.find(name)
        if meta is not None and meta.kind is not kind:
            raise WrongType
        return meta

    def make(self, name: bytes, kind: Kind, whole: bool = False) -> Meta:
        """A key that is not there yet; it is there once it is saved.

        Parameters:
            whole: all of it is in its record's body, until `spread` is called.
        """
        meta = Meta(name, kind, 0, 0, 0, 0, b"")
        if not whole and kind is not Kind.STRING:
            self.spread(meta)
        return meta

    def of_or_make(self, name: bytes, kind: Kind, whole: bool = False) -> Meta:
        """The key, made (see `make`) if it is not there. Call it when nothing can go wrong any more.

        Raises:
            WrongType: it is of another type.
        """
        return self.of(name, kind) or self.make(name, kind, whole)

    def spread(self, meta: Meta) -> None:
        """Give a key that was made whole the number under which it can have elements."""
        meta.key_id = take_id(self.txn)

    def save(self, meta: Meta) -> None:
        """Store the record of a key that has changed. Without elements it is gone, unless its type may
        be empty.
        """
        if not meta.count and meta.kind not in (Kind.STRING, Kind.STREAM):
            if meta.stamp:
                self.delete(meta)
            return
        meta.stamp = self.txn.id()
        self.txn.put(self._meta + name_key(meta.name), _pack(meta))

    def delete(self, meta: Meta) -> None:
        """Remove a key with all that is in it."""
        short = name_key(meta.name)
        self.txn.delete(self._meta + short)
        if meta.expires:
            self.txn.delete(self._listed(meta.expires, short))
        if meta.count and meta.key_id:
            self.txn.put(GARBAGE + _U64.pack(meta.key_id), b"")

    def rename(self, meta: Meta, name: bytes) -> None:
        """Give a key another name, in place of the key that has it."""
        self.move(meta, self, name)

    def move(self, meta: Meta, target: Keyspace, name: bytes) -> None:
        """Move a key to a name of another database, in place of the key that has it there."""
        other = target.find(name)
        if other is not None:
            target.delete(other)
        short = name_key(meta.name)
        self.txn.delete(self._meta + short)
        expires = meta.expires
        if expires:
            self.txn.delete(self._listed(expires, short))
        meta.name, meta.expires = name, 0
        target.save(meta)
        if expires:
            target.expire(meta, expires)
        target.signal(name)

    def copy(self, meta: Meta, target: Keyspace, name: bytes) -> None:
        """Copy a key to a name, of another database perhaps, that no key has."""
        made = target.make(name, meta.kind, whole=not meta.key_id)
        made.count, made.body = meta.count, meta.body
        if meta.key_id:
            start = len(meta.elements)
            for key, value in scan(self.txn, meta.elements):
                self.txn.put(made.elements + key[start:], value)
        target.save(made)
        if meta.expires:
            target.expire(made, meta.expires)
        target.signal(name)

    def stamp(self, name: bytes) -> int:
        """The transaction that changed the key last; 0 if there is none. For WATCH."""
        meta = self.find(name)
        return 0 if meta is None else meta.stamp

    # Expiry

    def expire(self, meta: Meta, at: int) -> None:
        """Let the key expire at `at` (epoch milliseconds; 0: never), and store its record."""
        short = name_key(meta.name)
        if meta.expires:
            self.txn.delete(self._listed(meta.expires, short))
        meta.expires = at
        if at:
            self.txn.put(self._listed(at, short), b"")
        self.save(meta)

    def _listed(self, at: int, short: bytes) -> bytes:
        return EXPIRY + _U64.pack(at) + _U16.pack(self.number) + short

    # All of them

    def all(self, after: bytes = b"", prefix: bytes = b"") -> Iterator[Meta]:
        """All keys of the database in the order of `cursor_of`.

        Parameters:
            after: from the one after this on.
            prefix: those with other names may be left out.
        """
        # Names that are too long for a key come first, and in no order.
        for names in (b"#", b"=" + prefix[:_PLAIN]):
            first = self._meta + names
            start = max(first, self._meta + after + b"\0") if after else first
            for key, raw in scan(self.txn, first, start):
                meta = _unpack(_name(key[len(self._meta) :], raw), raw)
                if not meta.expires or meta.expires > self.now:
                    yield meta

    def all_there_are(self) -> Iterator[Meta]:
        """The same, with those that have expired and were not removed yet."""
        for key, raw in scan(self.txn, self._meta):
            yield _unpack(_name(key[len(self._meta) :], raw), raw)

    def size(self) -> int:
        """How many keys there are, expired ones that were not removed yet among them."""
        return sum(1 for _ in scan(self.txn, self._meta))

    def expiring(self) -> int:
        """How many of them will expire, or have."""
        return sum(_RECORD.unpack_from(raw)[3] > 0 for _, raw in scan(self.txn, self._meta))

    @staticmethod
    def cursor_of(name: bytes) -> bytes:
        """What orders the keys: to go on behind this one."""
        return name_key(name)

    # Bells

    def signal(self, name: bytes) -> None:
        """Wake those who block until something is in this key."""
        self.space.announce(self.txn, bell_of(self.number, name))


def bell_of(number: int, name: bytes) -> bytes:
    """What `Space.wait` is to be given for a key of a database."""
    return _U16.pack(number) + name


def take_id(txn: Txn) -> int:
    """A number for elements that nothing else has had."""
    raw = txn.get(NEXT_ID)
    number = 1 if raw is None else int(_U64.unpack(raw)[0])
    txn.put(NEXT_ID, _U64.pack(number + 1))
    return number


def delete_elements(txn: Txn, meta: Meta) -> None:
    """Remove all elements of a deleted key now."""
    if meta.key_id:
        with txn.cursor() as cursor:
            while _delete_some(cursor, meta.elements):
                pass
        txn.delete(GARBAGE + _U64.pack(meta.key_id))


def sweep(txn: Txn, now: int) -> None:
    """Remove a few expired keys, and a few elements that belong to no key any more."""
    with txn.cursor() as cursor:
        for _ in range(_EXPIRED):
            key = _first(cursor, EXPIRY)
            if key is None or _U64.unpack_from(key, len(EXPIRY))[0] > now:
                break
            cursor.delete()
            raw = txn.pop(META + key[len(EXPIRY) + 8 :])
            if raw is not None:
                meta = _unpack(b"", raw)
                if meta.count and meta.key_id:
                    txn.put(GARBAGE + _U64.pack(meta.key_id), b"")
        garbage = _first(cursor, GARBAGE)
        if garbage is not None and not _delete_some(cursor, ELEMENT + garbage[len(GARBAGE) :]):
            txn.delete(garbage)


def _first(cursor: Cursor, prefix: bytes) -> bytes | None:
    """The first key with this prefix, at which the cursor is then."""
    if cursor.set_range(prefix):
        key = cursor.key()
        if key.startswith(prefix):
            return key
    return None


def _delete_some(cursor: Cursor, prefix: bytes) -> bool:
    """Delete a few entries; whether there may be more."""
    found = cursor.set_range(prefix)
    for _ in range(_SWEPT):
        if not found or not cursor.key().startswith(prefix):
            return False
        found = cursor.delete()
    return True


def _pack(meta: Meta) -> bytes:
    hashed = meta.name if len(meta.name) > _PLAIN else b""
    return (
        _RECORD.pack(meta.kind, meta.stamp, meta.key_id, meta.expires, meta.count, len(hashed))
        + hashed
        + meta.body
    )


_KINDS = {kind.value: kind for kind in Kind}
"""Calling `Kind` takes seven times as long as looking here."""

_PLAIN = 400
"""Names up to this length are in the key itself (see `name_key`)."""


def _unpack(name: bytes, raw: bytes) -> Meta:
    kind, stamp, key_id, expires, count, length = _RECORD.unpack_from(raw)
    return Meta(name, _KINDS[kind], stamp, key_id, expires, count, raw[_RECORD.size + length :])


def _name(short: bytes, raw: bytes) -> bytes:
    if short[:1] == b"=":
        return short[1:]
    length = _RECORD.unpack_from(raw)[5]
    return raw[_RECORD.size : _RECORD.size + length]
