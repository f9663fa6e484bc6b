"""Who is connected to a store: what each connection shows of itself, and how another one calls it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING

import msgpack

if TYPE_CHECKING:
    from equeue_core.storage import Roster, Space, Txn

SHOWN_EVERY = 1.0
"""Seconds after which a connection that works shows so again."""

_PLACES = 1 << 14
"""More than there are places: an id is a time, and a place."""
_NAME = 400
"""Bytes of a name that others see at most; of a library's, half of it."""


class Message(IntEnum):
    """What one connection wants of another."""

    END = 0
    GIVE_UP = 1
    FAIL = 2


@dataclass(slots=True)
class Client:
    """A connection as it shows itself. The times are epoch seconds.

    Attributes:
        queued: commands since MULTI; -1: it is in no transaction.
        subscribed: numbers of its channels, patterns and shard channels.
        blocked: it waits in a blocking command.
    """

    id: int = 0
    pid: int = 0
    since: float = 0.0
    active: float = 0.0
    name: bytes = b""
    library: bytes = b""
    version: bytes = b""
    command: str = "NULL"
    db: int = 0
    protocol: int = 2
    subscribed: tuple[int, ...] = (0, 0, 0)
    queued: int = -1
    watched: int = 0
    blocked: bool = False
    no_evict: bool = False
    no_touch: bool = False

    def pack(self) -> bytes:
        """What `unpack` makes a client of; cut to the length of a place's record."""
        name, half = self.name[:_NAME], _NAME // 2
        values = list(_values_of(self))
        values[4:7] = name, self.library[:half], self.version[:half]
        packed: bytes = msgpack.packb(values)
        return packed

    @classmethod
    def unpack(cls, record: bytes) -> Client | None:
        """The client; None if there is none, or it is one of another release."""
        try:
            client = cls(*msgpack.unpackb(record))
        except (ValueError, TypeError):
            return None
        client.subscribed = tuple(client.subscribed)
        return client

    def flags(self) -> str:
        """One letter for each thing that is special about it."""
        marks = {
            "P": any(self.subscribed),
            "b": self.blocked,
            "x": self.queued >= 0,
            "e": self.no_evict,
            "T": self.no_touch,
        }
        return "".join(letter for letter, there in marks.items() if there) or "N"

    def describe(self, now: float) -> bytes:
        """Its line in CLIENT LIST. It has no address: a made-up one, of its own, stands for it."""
        command = self.command.lower().replace(" ", "|")
        channels, patterns, shards = self.subscribed
        before = (
            f"id={self.id} addr={self.address} laddr=127.0.0.1:0 fd={self.id % _PLACES} name="
        ).encode()
        between = (
            f" age={max(0, int(now - self.since))} idle={max(0, int(now - self.active))} "
            f"flags={self.flags()} db={self.db} sub={channels} psub={patterns} ssub={shards} "
            f"multi={self.queued} watch={self.watched} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 "
            f"rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={command} user=default redir=-1 "
            f"resp={self.protocol} pid={self.pid} lib-name="
        ).encode()
        return before + self.name + between + self.library + b" lib-ver=" + self.version

    @property
    def address(self) -> str:
        """What stands for its address: no other connection has it at the same time."""
        return f"127.0.0.1:{self.id % _PLACES + 1}"

    @property
    def kind(self) -> bytes:
        """Its type, as CLIENT LIST and CLIENT KILL want it."""
        return b"pubsub" if any(self.subscribed) else b"normal"


_values_of = attrgetter(*(each.name for each in fields(Client)))
"""`dataclasses.astuple` would copy all of them, and deeply, at every new connection."""


def client_id(now: float, place: int, last: int) -> int:
    """A number for who takes a place after `last`; -1: who has none."""
    milliseconds = max(int(now * 1000), last // _PLACES + 1)
    return milliseconds * _PLACES + (place if place >= 0 else _PLACES - 1)


def present(roster: Roster) -> list[Client]:
    """All connections there are, the oldest first; not those that are to end."""
    found = [Client.unpack(record) for _, record in roster.present()]
    there = [client for client in found if client and not _is_to_end(roster, client.id)]
    return sorted(there, key=lambda client: client.id)


def is_alive(roster: Roster, number: int) -> bool:
    """Whether the connection of this id still has its place, and may keep it. In doubt it has."""
    place = number % _PLACES
    try:
        if not roster.is_alive(place):
            return False
        client = Client.unpack(roster.record(place))
        return client is not None and client.id == number and not _is_to_end(roster, number)
    except OSError:  # no descriptor is left, say
        return True


def _is_to_end(roster: Roster, number: int) -> bool:
    return heard(number, roster.called(number % _PLACES)) is Message.END


def call(space: Space, txn: Txn, number: int, message: Message) -> None:
    """Tell the connection of this id something; it looks before its next command, or as it waits."""
    with contextlib.suppress(OSError):
        space.roster.call(number % _PLACES, number * len(Message) + message)
    space.announce_to_all(txn)


def heard(number: int, called: int) -> Message | None:
    """What was said to the connection of this id, if it was meant."""
    meant, message = divmod(called, len(Message))
    return Message(message) if meant == number else None
