"""Publishing and subscribing: who listens to what, and the messages that wait for each listener.

A message is put into the mailbox of each subscriber, in the transaction of the command that publishes it,
and taken from there in one of the subscriber's. What belongs to a connection that is gone is cleared away
by those who publish and subscribe.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import chain, islice

import msgpack

from equeue_core.storage import SpaceId, Txn, first_key, key_prefix, name_key, scan
from equeue_rq._glob import matcher
from equeue_rq._keyspace import ELEMENT, GARBAGE, take_id

_PREFIX = key_prefix(SpaceId.RQ)

SUBSCRIBER = _PREFIX + b"u"
"""+ client id: its mailbox (`_BOX`)."""
SUBSCRIPTION = _PREFIX + b"w"
"""+ client id, kind, name (or its hash): the name."""
LISTENER = _PREFIX + b"l"
"""+ kind, length of what follows, name (or its hash), client id: the name."""

_U16 = struct.Struct(">H")
_U64 = struct.Struct(">Q")
_BOX = struct.Struct(
    ">QQQ"
)  # under which id its messages are, the next one's number, bytes waiting

LIMIT = 32 << 20
"""Bytes that may wait for a subscriber. One that does not read loses its connection, as with Redis."""
_TAKEN = 4 << 20
"""Bytes of messages that are taken at a time."""
_CHECKED = 64
"""Subscribers of whom a new one checks whether they are alive."""


class Kind(Enum):
    """To what one can subscribe."""

    CHANNEL = b"c"
    PATTERN = b"p"
    SHARD = b"s"


Alive = Callable[[int], bool]


def bell(number: int) -> bytes:
    """What `Space.wait` is to be given for a client's mailbox."""
    return b"mail" + _U64.pack(number)


# Subscribing


def subscribe(txn: Txn, number: int, kind: Kind, names: Iterable[bytes]) -> None:
    """Let a client have the messages of these channels or patterns from now on."""
    client = _U64.pack(number)
    if txn.get(SUBSCRIBER + client) is None:
        txn.put(SUBSCRIBER + client, _BOX.pack(take_id(txn), 0, 0))
    for name in names:
        short = name_key(name)
        txn.put(SUBSCRIPTION + client + kind.value + short, name)
        txn.put(_listeners(kind, short) + client, name)


def unsubscribe(txn: Txn, number: int, kind: Kind, names: Iterable[bytes]) -> None:
    """Let it have them no longer."""
    client = _U64.pack(number)
    for name in names:
        short = name_key(name)
        txn.delete(SUBSCRIPTION + client + kind.value + short)
        txn.delete(_listeners(kind, short) + client)


def forget(txn: Txn, number: int) -> None:
    """Remove a client with its mailbox."""
    client = _U64.pack(number)
    for key, _ in scan(txn, SUBSCRIPTION + client):
        tail = key[len(SUBSCRIPTION) + len(client) :]
        txn.delete(key)
        txn.delete(_listeners(Kind(tail[:1]), tail[1:]) + client)
    raw = txn.pop(SUBSCRIBER + client)
    if raw is not None:
        txn.put(GARBAGE + raw[: _U64.size], b"")


def clear(txn: Txn, number: int, alive: Alive) -> None:
    """Forget some clients that are gone, beginning at random."""
    first = first_key(txn, SUBSCRIBER)
    if first is None:
        return
    oldest = _client(first)
    start = SUBSCRIBER + _U64.pack(random.randint(oldest, max(oldest, number)))
    all_of_them = chain(scan(txn, SUBSCRIBER, start), scan(txn, SUBSCRIBER))
    for key, _ in islice(all_of_them, _CHECKED):
        if not alive(_client(key)):
            forget(txn, _client(key))


def _listeners(kind: Kind, short: bytes) -> bytes:
    return LISTENER + kind.value + _U16.pack(len(short)) + short


def _client(key: bytes) -> int:
    return int(_U64.unpack(key[-_U64.size :])[0])


# Publishing


def publish(
    txn: Txn, kind: Kind, channel: bytes, data: bytes, alive: Alive
) -> tuple[list[int], list[int]]:
    """Put a message into the mailboxes of those who listen.

    Returns:
        The clients that get it, one for each time; and those who had too much waiting, who have lost
        their subscriptions.
    """
    reached, lost = [], []
    for number, message in _recipients(txn, kind, channel, data):
        if number in lost or not alive(number):
            forget(txn, number)
        elif _deliver(txn, number, message):
            reached.append(number)
        else:
            lost.append(number)
    return reached, lost


def _recipients(
    txn: Txn, kind: Kind, channel: bytes, data: bytes
) -> Iterator[tuple[int, list[bytes]]]:
    word = b"smessage" if kind is Kind.SHARD else b"message"
    for key, _ in scan(txn, _listeners(kind, name_key(channel))):
        yield _client(key), [word, channel, data]
    if kind is Kind.CHANNEL:
        for key, pattern in scan(txn, LISTENER + Kind.PATTERN.value):
            if matcher(pattern)(channel):
                yield _client(key), [b"pmessage", pattern, channel, data]


def _deliver(txn: Txn, number: int, message: list[bytes]) -> bool:
    raw = txn.get(SUBSCRIBER + _U64.pack(number))
    if raw is None:
        return False
    box, following, size = _BOX.unpack(raw)
    packed = msgpack.packb(message)
    if size + len(packed) > LIMIT:
        forget(txn, number)
        return False
    txn.put(ELEMENT + _U64.pack(box) + _U64.pack(following), packed)
    txn.put(SUBSCRIBER + _U64.pack(number), _BOX.pack(box, following + 1, size + len(packed)))
    return True


# Reading


def has_mail(txn: Txn, number: int) -> bool | None:
    """True if messages wait for the client; None if not, or if it is forgotten."""
    raw = txn.get(SUBSCRIBER + _U64.pack(number))
    return True if raw is not None and _BOX.unpack(raw)[2] else None


def take(txn: Txn, number: int, limit: int = _TAKEN) -> list[list[bytes]] | None:
    """The client's oldest messages, up to so many bytes, which are removed; None if it is unknown."""
    raw = txn.get(SUBSCRIBER + _U64.pack(number))
    if raw is None:
        return None
    box, following, size = _BOX.unpack(raw)
    if not size:
        return []
    found: list[list[bytes]] = []
    taken = 0
    for key, packed in scan(txn, ELEMENT + _U64.pack(box)):
        txn.delete(key)
        found.append(msgpack.unpackb(packed))
        taken += len(packed)
        if taken >= limit:
            break
    txn.put(SUBSCRIBER + _U64.pack(number), _BOX.pack(box, following, size - taken))
    return found


# Counting


def names(txn: Txn, kind: Kind, alive: Alive) -> list[bytes]:
    """All channels or patterns that somebody listens to."""
    return list(dict.fromkeys(name for number, name in _all(txn, kind) if alive(number)))


def count(txn: Txn, kind: Kind, channel: bytes, alive: Alive) -> int:
    """How many listen to a channel."""
    found = scan(txn, _listeners(kind, name_key(channel)))
    return sum(alive(_client(key)) for key, _ in found)


def _all(txn: Txn, kind: Kind) -> Iterator[tuple[int, bytes]]:
    for key, name in scan(txn, LISTENER + kind.value):
        yield _client(key), name
