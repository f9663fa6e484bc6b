"""Writes docs/reference/redis-commands.md: ``python -m tests.docs._redis_commands``."""

from __future__ import annotations

import equeue_rq._commands  # noqa: F401 - fills the table
from equeue_rq._commands._table import COMMANDS, Command
from tests.docs import _pages

PAGE = _pages.DOCS / "reference" / "redis-commands.md"

FAMILIES = {
    "strings": "Strings",
    "hashes": "Hashes",
    "lists": "Lists",
    "sets": "Sets",
    "sorted_sets": "Sorted sets",
    "sorted_set_ranges": "Ranges of sorted sets",
    "sorted_set_algebra": "Several sorted sets together",
    "streams": "Streams",
    "keys": "Keys of any type",
    "pubsub": "Publishing and subscribing",
    "transactions": "Transactions",
    "scripting": "Scripts",
    "connection": "The connection",
    "clients": "Clients",
    "server": "The server",
    "introspection": "The list of commands",
    "objects": "How keys are stored",
    "claims": "What Redis has not",
}
"""A heading for each module of commands, in the order of the page."""

_START = """\
<!-- Made by python -m tests.docs._redis_commands -->

# Redis commands

What `LMDBRedis` answers, made from the program's table of commands. A command that is not here is answered
as Redis answers what it does not know. What these commands do is what they do in Redis, in the form that
they have in Redis 7.2, unless [the page on differences](../explanation/rq.md) says something else. The
tests send the same commands to a server and to a store, and compare the answers.

*Words* is how many words a command has, with its own name. What stands under *kind*:

| kind | meaning |
|---|---|
| reads | it only looks |
| changes | it changes data, and does not wait until that is on the disk |
| adds | it changes data, and waits for the disk; see [Durability](../explanation/rq.md#durability) |
| connection | it touches no data |
| waits | it can wait for data |
| not in scripts | Lua scripts cannot call it |
"""


def page() -> str:
    """The page's text."""
    families: dict[str, list[Command]] = {}
    for command in COMMANDS.values():
        families.setdefault(command.run.__module__.rpartition(".")[2], []).append(command)
    parts = [_START]
    for family in sorted(families, key=list(FAMILIES).index):
        parts.append(f"\n## {FAMILIES[family]}\n\n| command | words | kind | what it does |\n")
        parts.append("|---|---|---|---|\n")
        parts += map(_row, families[family])
    return "".join(parts)


def _row(command: Command) -> str:
    words = str(command.arity) if command.arity >= 0 else f"{-command.arity} or more"
    summary = command.summary.replace("``", "`").replace("|", "\\|")
    return f"| `{command.name}` | {words} | {', '.join(_kinds(command.flags))} | {summary} |\n"


def _kinds(flags: frozenset[str]) -> list[str]:
    first = next(
        word
        for flag, word in {
            "adds": "adds",
            "write": "changes",
            "readonly": "reads",
            "connection": "connection",
        }.items()
        if flag in flags
    )
    rest = {"blocking": "waits", "noscript": "not in scripts"}
    return [first, *(word for flag, word in rest.items() if flag in flags)]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
