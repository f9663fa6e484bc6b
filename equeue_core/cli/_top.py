"""``equeue top``."""

from __future__ import annotations

import os
import sys

import click

from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._open import path_argument, require_store

SHORTEST = 0.1
"""Seconds between two looks at least."""


@click.command(short_help="Watch a store live.")
@path_argument
@click.option(
    "--interval",
    type=click.FloatRange(min=SHORTEST, max=3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help=f"How long after a look the next one is taken, from {SHORTEST} on.",
)
def top(path: str, interval: float) -> None:
    """Watch a store live, on a terminal: rates, states, running jobs, failures as they come.

    Rates are means of the last five looks. A requeued job counts as coming in. RQ keeps no count of what was
    put: for its queues, rates are what shows in the states. `oldest` is how long ago the pending job was put
    that has waited longest, of those that are next in line.

    Needs textual. Ends with a message when the store is removed.
    """
    require_store(path)
    if not _is_terminal():
        raise Failure(
            "this needs a terminal for its screen. For a script or a pipe, say equeue stats, with --json if "
            "a program reads it; for a monitoring system, equeue metrics.",
            Code.USAGE,
        )
    try:
        from equeue_core.cli import _screen
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise Failure(
            "the screen needs textual, which is not installed: pip install textual (or install equeue with "
            "its extra: cli)",
            Code.MISSING,
        ) from None
    _screen.run(path, interval)


def _is_terminal() -> bool:
    # textual reads from the first and draws on the last.
    is_one = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return is_one and os.environ.get("TERM") not in ("dumb", "unknown")


COMMANDS = [top]
