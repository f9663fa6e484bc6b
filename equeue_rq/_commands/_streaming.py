"""Ids of streams, and how streams are trimmed: what the commands of streams are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equeue_rq._commands._table import integer
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._types.stream import (
    FIRST_ID,
    LAST_ID,
    MAX,
    Stream,
    make_id,
    milliseconds_of,
    next_id,
    previous_id,
)

INVALID_ID = "ERR Invalid stream ID specified as stream command argument"
TOO_SMALL = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
_LIMIT = 10_000
"""How many entries ``~`` removes at most unless LIMIT is given, as in Redis."""


def _half(raw: bytes) -> int:
    if not raw.isdigit() or int(raw) > MAX:
        raise CommandError(INVALID_ID)
    return int(raw)


def full_id(raw: bytes, sequence: int = 0) -> bytes:
    """An id.

    Parameters:
        raw: as it is written.
        sequence: its second half if it has none.

    Raises:
        CommandError: it is none.
    """
    head, dash, tail = raw.partition(b"-")
    return make_id(_half(head), _half(tail) if dash else sequence)


def low_id(raw: bytes) -> bytes:
    """The first id of a range.

    Raises:
        CommandError: it is none.
    """
    return _end(raw, 0, next_id, "start")


def high_id(raw: bytes) -> bytes:
    """The last id of a range.

    Raises:
        CommandError: it is none.
    """
    return _end(raw, MAX, previous_id, "end")


def _end(raw: bytes, sequence: int, inwards: Callable[[bytes], bytes | None], which: str) -> bytes:
    if raw == b"-":
        return FIRST_ID
    if raw == b"+":
        return LAST_ID
    if raw[:1] != b"(":
        return full_id(raw, sequence)
    found = inwards(full_id(raw[1:], sequence))
    if found is None:
        raise CommandError(f"ERR invalid {which} ID for the interval")
    return found


@dataclass(slots=True)
class NewId:
    """The id that a new entry is to have.

    Attributes:
        milliseconds: its first half; None: by the clock.
        sequence: its second half; None: the next one.
    """

    milliseconds: int | None
    sequence: int | None

    @classmethod
    def parse(cls, raw: bytes) -> NewId:
        """An id, or ``*``, or an id whose second half is ``*``.

        Raises:
            CommandError: it is none, or too small for any stream.
        """
        if raw == b"*":
            return cls(None, None)
        head, dash, tail = raw.partition(b"-")
        if tail == b"*":
            return cls(_half(head), None)
        return cls(_half(head), _half(tail) if dash else 0)

    def resolve(self, stream: Stream, now: int) -> bytes:
        """The id for this stream at this time.

        Raises:
            CommandError: it is not greater than the last one.
        """
        last = stream.last_id
        if last == LAST_ID:
            raise CommandError(
                "ERR The stream has exhausted the last possible ID, unable to add more items"
            )
        if self.milliseconds is None:
            return max(make_id(now, 0), next_id(last) or LAST_ID)
        if self.sequence is not None:
            made = make_id(self.milliseconds, self.sequence)
        elif self.milliseconds == milliseconds_of(last):
            made = next_id(last) or last
        else:
            made = make_id(self.milliseconds, 0)
        if made <= last or milliseconds_of(made) != self.milliseconds:
            raise CommandError(TOO_SMALL)
        return made


@dataclass(slots=True)
class Trim:
    """How a stream is trimmed.

    Attributes:
        strategy: ``MAXLEN`` or ``MINID``; empty: it is not.
        length, before: see `Stream.trim`.
        limit: how many entries are removed at most; 0: all; None: what is usual.
        roughly: a few more may stay.
    """

    strategy: bytes = b""
    length: int = 0
    before: bytes = LAST_ID
    limit: int | None = None
    roughly: bool = False

    def take(self, words: list[bytes]) -> bool:
        """Read one option from the end of `words`, which are in reverse; whether it was one.

        Raises:
            CommandError: it makes no sense.
        """
        word = words[-1].upper()
        if len(words) < 2 or word not in (b"MAXLEN", b"MINID", b"LIMIT"):
            return False
        words.pop()
        if word == b"LIMIT":
            self.limit = _not_negative(words.pop(), "LIMIT")
            return True
        if self.strategy:  # the same one twice, too
            raise CommandError(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            )
        self.strategy = word
        if len(words) > 1 and words[-1] in (b"~", b"="):
            self.roughly = words.pop() == b"~"
        if word == b"MAXLEN":
            self.length = _not_negative(words.pop(), "MAXLEN")
        else:
            self.before = full_id(words.pop())
        return True

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            CommandError: these do not.
        """
        if self.limit and not self.strategy:
            raise CommandError(
                f"{SYNTAX}, LIMIT cannot be used without specifying a trimming strategy"
            )
        if self.limit is not None and not self.roughly:
            raise CommandError(f"{SYNTAX}, LIMIT cannot be used without the special ~ option")

    def apply(self, stream: Stream) -> int:
        """Trim; how many entries were removed."""
        if not self.strategy:
            return 0
        limit = self.limit if self.limit is not None else _LIMIT if self.roughly else 0
        before = self.before if self.strategy == b"MINID" else LAST_ID + b"\0"
        return stream.trim(self.length, before, limit)


def _not_negative(raw: bytes, name: str) -> int:
    value = integer(raw)
    if value < 0:
        raise CommandError(f"ERR The {name} argument must be >= 0.")
    return value
