"""COMMAND: the table of commands, as clients ask for it."""

from __future__ import annotations

from collections.abc import Iterable

from equeue_rq._commands._table import COMMANDS, Call, Command, command, find
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply, Status

_SHOWN = {
    "write": b"write",
    "readonly": b"readonly",
    "noscript": b"noscript",
    "blocking": b"blocking",
}


@command("COMMAND", -1, "connection")
def command_(call: Call) -> Reply:
    """All commands: name, arity, flags, and where their keys are."""
    return [_describe(name) for name in _names()]


@command("COMMAND COUNT", 2, "connection")
def command_count(call: Call) -> Reply:
    """How many commands there are."""
    return len(_names())


@command("COMMAND LIST", -2, "connection")
def command_list(call: Call) -> Reply:
    """The names of all commands."""
    return [name.lower().encode() for name in _names()]


@command("COMMAND INFO", -2, "connection")
def command_info(call: Call) -> Reply:
    """The same of some commands; nil for what is none."""
    names = _names()
    wanted = [each.decode("latin-1").upper() for each in call.args] or names
    return [_describe(name) if name in names else None for name in wanted]


@command("COMMAND DOCS", -2, "connection")
def command_docs(call: Call) -> Reply:
    """What some commands are for, or all."""
    names = _names()
    wanted = [each.decode("latin-1").upper() for each in call.args] or names
    return {name.lower().encode(): _document(name) for name in wanted if name in names}


@command("COMMAND GETKEYS", -3, "connection")
def command_getkeys(call: Call) -> Reply:
    """The keys of a command."""
    found, args = find(call.args)
    first, last, step = found.keys
    if not first:
        raise CommandError("ERR The command has no key arguments")
    words = [b""] * (1 + found.name.count(" ")) + args
    end = last if last >= 0 else len(words) + last
    return words[first : end + 1 : step]


def _names() -> list[str]:
    """All commands, without subcommands."""
    return list(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))


def _subcommands(name: str) -> list[Command]:
    return [each for each in COMMANDS.values() if each.name.startswith(f"{name} ")]


def _describe(name: str) -> Reply:
    below = _subcommands(name)
    found = COMMANDS.get(name)
    if found is None:
        return _row(name.lower(), -2, (), (0, 0, 0), [_row_of(each) for each in below])
    return _row(
        name.lower(), found.arity, found.flags, found.keys, [_row_of(each) for each in below]
    )


def _row_of(subcommand: Command) -> Reply:
    shown = subcommand.name.lower().replace(" ", "|")
    return _row(shown, subcommand.arity, subcommand.flags, subcommand.keys, [])


def _row(
    name: str, arity: int, flags: Iterable[str], keys: tuple[int, int, int], below: list[Reply]
) -> Reply:
    shown = [Status(_SHOWN[flag]) for flag in sorted(flags) if flag in _SHOWN]
    return [name.encode(), arity, shown, *keys, [], [], [], below]


def _document(name: str) -> Reply:
    found = COMMANDS.get(name)
    summary = found.summary if found is not None else "Several commands in one."
    document: dict[bytes, Reply] = {b"summary": summary.encode()}
    below = _subcommands(name)
    if below:
        document[b"subcommands"] = {
            each.name.lower().replace(" ", "|").encode(): {b"summary": each.summary.encode()}
            for each in below
        }
    return document
