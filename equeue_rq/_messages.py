"""What goes wrong, in Redis's words: clients compare these texts."""

from __future__ import annotations


class CommandError(Exception):
    """A command is refused, and has written nothing. The text is what Redis answers, with its code."""


class WrongType(CommandError):
    """The key holds another type."""

    def __init__(self) -> None:
        super().__init__("WRONGTYPE Operation against a key holding the wrong kind of value")


NOT_AN_INTEGER = "ERR value is not an integer or out of range"
NOT_A_FLOAT = "ERR value is not a valid float"
SYNTAX = "ERR syntax error"
NO_SUCH_KEY = "ERR no such key"
OUT_OF_RANGE = "ERR index out of range"


def wrong_arity(name: str) -> CommandError:
    """The wrong number of arguments."""
    return CommandError(f"ERR wrong number of arguments for '{name.lower()}' command")


def unknown_command(name: bytes, args: list[bytes]) -> CommandError:
    """No such command."""
    shown = " ".join(f"'{_printable(arg)}'" for arg in args)[:128]
    return CommandError(
        f"ERR unknown command '{_printable(name)[:128]}', with args beginning with: "
        + (shown + " " if shown else "")
    )


def unknown_subcommand(name: bytes, subcommand: bytes) -> CommandError:
    """A command that has no such subcommand."""
    return CommandError(
        f"ERR unknown subcommand '{_printable(subcommand)[:128]}'. Try {_printable(name).upper()} HELP."
    )


def _printable(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\r", " ").replace("\n", " ")
