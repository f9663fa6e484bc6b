"""The table of commands: name, arity, flags, where its keys are, and the function that runs it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equeue_rq._messages import CommandError, unknown_command, unknown_subcommand, wrong_arity

if TYPE_CHECKING:
    from equeue_rq._keyspace import Keyspace
    from equeue_rq._replies import Reply
    from equeue_rq._session import Session


@dataclass(slots=True)
class Call:
    """One command being run.

    Attributes:
        db: the session's database in the running transaction.
        args: what follows the command's name.
        session: whose command it is.
        name: the command's name in capitals.
    """

    db: Keyspace
    args: list[bytes]
    session: Session
    name: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """What a blocking command answers when there is nothing yet. Its client waits and tries again; in a
    transaction or a script it gets nil.

    Attributes:
        keys: the command is run again when one of these keys changes.
        timeout: seconds to wait at most; 0: for ever.
        otherwise: what it answers when nothing came in time.
        again: with which arguments it is run again; None: with the same.
    """

    keys: list[bytes]
    timeout: float
    otherwise: Reply = None
    again: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the table.

    Attributes:
        name: in capitals, with a subcommand after a space.
        run: the function. It refuses (by raising `CommandError`) before it writes.
        arity: as Redis counts: how many words with the name, negative: at least so many.
        flags: ``write`` or ``readonly``; ``adds`` if it brings in work that must survive a power cut
            (see `Space.write`); ``blocking``; ``noscript``; ``connection`` if it needs no transaction;
            ``script`` if it runs one that may add or remove.
        keys: first, last and step of its keys, as Redis's COMMAND has it; (0, 0, 0): none, or elsewhere.
        summary: the function's docstring.
    """

    name: str
    run: Callable[[Call], Reply]
    arity: int
    flags: frozenset[str]
    keys: tuple[int, int, int]
    summary: str

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return "write" in self.flags


COMMANDS: dict[str, Command] = {}
"""By name."""

_BY_WORD: dict[bytes, Command] = {}
"""Those that have no subcommands, by the bytes of their name."""

_BY_WORDS: dict[bytes, dict[bytes, Command]] = {}
"""All by first word, then by subcommand; b"": there is none."""


def command(
    name: str, arity: int, *flags: str, keys: tuple[int, int, int] = (0, 0, 0)
) -> Callable[[Callable[[Call], Reply]], Callable[[Call], Reply]]:
    """Enters the decorated function into the table; see `Command`."""

    def enter(run: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
        summary = (run.__doc__ or "").strip().partition("\n")[0]
        entered = Command(name, run, arity, frozenset(flags), keys, summary)
        COMMANDS[name] = entered
        word, _, subcommand = name.encode().partition(b" ")
        _BY_WORDS.setdefault(word, {})[subcommand] = entered
        if list(_BY_WORDS[word]) == [b""]:
            _BY_WORD[word] = entered
        else:
            _BY_WORD.pop(word, None)
        return run

    return enter


@dataclass(slots=True)
class Several:
    """What a command answers that has several replies of their own, as SUBSCRIBE has one for each
    channel.
    """

    replies: list[Reply]


def find(words: list[bytes]) -> tuple[Command, list[bytes]]:
    """The command that these words call, and its arguments.

    Raises:
        CommandError: there is no such command, or the number of its arguments is wrong.
    """
    found = _BY_WORD.get(words[0])
    args = words[1:]
    if found is None:
        found, args = _find_among(words, args)
    arity = found.arity
    if len(words) != arity if arity >= 0 else len(words) < -arity:
        raise wrong_arity(found.name.replace(" ", "|"))
    return found, args


def _find_among(words: list[bytes], args: list[bytes]) -> tuple[Command, list[bytes]]:
    """The command, which may have subcommands, or be in small letters."""
    commands = _BY_WORDS.get(words[0].upper())
    if commands is None:
        raise unknown_command(words[0], args)
    found = commands.get(b"")
    if args and len(commands) > (found is not None):
        found = commands.get(args[0].upper())
        if found is None:
            raise unknown_subcommand(words[0], args[0])
        return found, args[1:]
    if found is None:
        raise wrong_arity(words[0].decode("latin-1"))
    return found, args


ONE = (1, 1, 1)
"""The keys of a command with one key, its first argument."""


def integer(raw: bytes, message: str = "ERR value is not an integer or out of range") -> int:
    """A signed 64-bit integer, written as Redis wants it: no spaces, no plus, no leading zeros.

    Raises:
        CommandError: it is none.
    """
    try:
        value = int(raw)
    except ValueError:
        raise CommandError(message) from None
    if b"%d" % value != raw or not -(1 << 63) <= value < 1 << 63:
        raise CommandError(message)
    return value


def number(raw: bytes, message: str = "ERR value is not a valid float") -> float:
    """A float; not NaN, and not rounded to infinity or nothing.

    Raises:
        CommandError: it is none.
    """
    try:
        if raw != raw.strip() or b"_" in raw:
            raise ValueError
        value = float(raw)
    except ValueError:
        raise CommandError(message) from None
    too_large = math.isinf(value) and raw[-1:].isdigit()
    too_small = value == 0 and bool(raw.lower().partition(b"e")[0].strip(b"+-.0"))
    if math.isnan(value) or too_large or too_small:
        raise CommandError(message)
    return value
