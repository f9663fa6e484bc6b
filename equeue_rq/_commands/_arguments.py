"""Options that several commands share: those of SET and GETEX, and when a key expires."""

from __future__ import annotations

from dataclasses import dataclass

from equeue_rq._commands._table import integer
from equeue_rq._messages import SYNTAX, CommandError

MAX_INTEGER = (1 << 63) - 1

_UNITS = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
"""Milliseconds in the unit of each option."""
_SET = frozenset((*_UNITS, b"KEEPTTL", b"NX", b"XX", b"GET"))
_EXPIRY = frozenset((*_UNITS, b"PERSIST"))


@dataclass(slots=True)
class Options:
    """What follows key and value.

    Attributes:
        nx, xx: only if there is no such key; only if there is.
        get: answer with the old value.
        lasts: EX, PX, EXAT, PXAT, KEEPTTL or PERSIST; empty: none of them.
        until: what follows it.
    """

    nx: bool = False
    xx: bool = False
    get: bool = False
    lasts: bytes = b""
    until: bytes = b""

    @property
    def keep_ttl(self) -> bool:
        """Whether the key expires when it would have done so without this."""
        return self.lasts == b"KEEPTTL"

    @property
    def persist(self) -> bool:
        """Whether the key is not to expire any more."""
        return self.lasts == b"PERSIST"


def set_options(args: list[bytes]) -> Options:
    """The options of SET.

    Raises:
        CommandError: there is something else, or two that exclude each other.
    """
    return _parse(args, _SET)


def expiry_options(args: list[bytes]) -> Options:
    """The options of GETEX.

    Raises:
        CommandError: there is something else, or two that exclude each other.
    """
    return _parse(args, _EXPIRY)


def _parse(args: list[bytes], allowed: frozenset[bytes]) -> Options:
    options = Options()
    words = iter(args)
    for given in words:
        word = given.upper()
        if word not in allowed:
            raise CommandError(SYNTAX)
        if word in (b"NX", b"XX", b"GET"):
            setattr(options, word.decode().lower(), True)
            continue
        if options.lasts not in (b"", word):
            raise CommandError(SYNTAX)
        options.lasts = word
        if word in _UNITS:
            until = next(words, None)
            if until is None:
                raise CommandError(SYNTAX)
            options.until = until
    if options.nx and options.xx:
        raise CommandError(SYNTAX)
    return options


def expiry(options: Options, now: int, command: str) -> int:
    """When the key expires, in epoch milliseconds; 0: never.

    Parameters:
        now: the time, in epoch milliseconds.
        command: the command's name, for the message.

    Raises:
        CommandError: the time is not positive, or none, or too large.
    """
    if options.lasts not in _UNITS:
        return 0
    at = integer(options.until) * _UNITS[options.lasts]
    if at > 0 and options.lasts in (b"EX", b"PX"):
        at += now
    if not 0 < at <= MAX_INTEGER:
        raise invalid_expiry(command)
    return at


def invalid_expiry(command: str) -> CommandError:
    """The time at which a key should expire is none."""
    return CommandError(f"ERR invalid expire time in '{command}' command")
