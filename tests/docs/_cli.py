"""Writes docs/reference/cli.md from the commands: ``python -m tests.docs._cli``."""

from __future__ import annotations

import inspect
import re

import click

from equeue_core.cli._app import app
from equeue_core.cli._errors import MEANINGS
from equeue_core.cli._metrics import METRICS
from tests.docs import _pages

PAGE = _pages.DOCS / "reference" / "cli.md"

ORDER = tuple(app.commands)
"""The commands in the order of the page."""

_START = """\
<!-- Made by python -m tests.docs._cli -->

# The command equeue

`equeue` looks at stores and looks after them, whatever put the jobs there: the core, Dramatiq or RQ.
[The how-to page](../how-to/command-line.md) has examples. It comes with the extra `cli`;
`python -m equeue_core` is the same command.

Each command, and `equeue` itself, takes `--help` (`-h`) and tells what there is. `equeue` also takes
`--version`, and prints the release.

Results go to standard output, messages to standard error. In a table, columns that would be empty are left
out, and only on a terminal the last one may be cut off; scripts should use `--json`. There, times are epoch
seconds, and bytes that are no text are `{"base64": "..."}`. Control characters of payloads and names are
shown as escapes.

Commands that only look change no job, make no store and upgrade none; but the store's own files beside
`data.mdb` are made if they are missing, as by every process that opens it, so a directory that may not be
written is refused.

The queues of the core have their own names. Dramatiq's begin with the broker's namespace, as in
`dramatiq:default`. RQ's are `rq:NAME` in database 0, and `rq@DB:NAME` in another one (or where a queue of the
core has that name).
"""

_STATES = """
## States

| state | of RQ's jobs | |
|---|---|---|
| `pending` | queued | |
| `scheduled` | scheduled | |
| `running` | started | |
| `done` | finished | |
| `failed` | failed | RQ counts stopped jobs with these |
| `cancelled` | canceled | |
| `deferred` | deferred | RQ only: waits for another job |
| `stopped` | stopped | RQ only: stopped while it ran |
"""


def page() -> str:
    """The page's text."""
    parts = [_START]
    for name in ORDER:
        parts += _section(name, app.commands[name])
    parts += ["\n## Exit codes\n\n| code | meaning |\n|---|---|\n"]
    parts += [f"| {int(code)} | {text} |\n" for code, text in MEANINGS.items()]
    parts += [_STATES, "\n## Metrics\n\n| metric | what it tells |\n|---|---|\n"]
    parts += [f"| `{name}` | {text} |\n" for name, text in METRICS.items()]
    return "".join(parts)


def _section(name: str, command: click.Command) -> list[str]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    words = ["equeue", name, *(each.metavar or str(each.name).upper() for each in arguments)]
    parts = [
        f"\n## equeue {name}\n\n",
        "```text\n",
        " ".join(words),
        " [OPTIONS]" if options else "",
    ]
    parts += ["\n```\n\n", _prose(command), "\n"]
    if options:
        parts += ["\n| option | meaning |\n|---|---|\n", *map(_row, options)]
    return parts


def _prose(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "")
    # What stands for a thing to be typed is marked as such.
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]+|'\{.*?\}')", r"`\1`", text)


def _row(option: click.Option) -> str:
    value = ""
    if not option.is_flag:
        if isinstance(option.type, click.Choice):
            value = " STATE"
        else:
            value = f" {option.metavar or option.type.name.upper().split()[0]}"
    names = ", ".join(f"`{each}{value}`" for each in option.opts)
    text = option.help or ""
    if isinstance(option.type, click.Choice):
        text += " One of " + ", ".join(f"`{each}`" for each in option.type.choices) + "."
    if option.show_default:
        text += f" Default: {option.default}."
    if option.required:
        text += " Required."
    return f"| {names} | {text} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
