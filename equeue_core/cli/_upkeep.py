"""Commands for a store as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import click

from equeue_core import _restore
from equeue_core._examine import examine
from equeue_core._maintenance import COMPACTED, PARTIAL
from equeue_core._store import _files
from equeue_core.cli._errors import Code
from equeue_core.cli._open import opened, path_argument, require_store
from equeue_core.cli._output import (
    confirm,
    json_option,
    note,
    print_json,
    progress,
    say,
    yes_option,
)
from equeue_core.cli._text import safe, size


def _size_of(*place: str) -> Callable[[], int]:
    """A look at the size of the data that is being written somewhere."""
    return partial(os.path.getsize, os.path.join(*place, _files.DATA))


@click.command(short_help="Copy a store that is in use.")
@path_argument
@click.argument("destination", metavar="DEST")
def backup(path: str, destination: str) -> None:
    """Write a consistent copy of a store, which may be in use, to a new or empty directory.

    Other processes wait while the data is copied.
    """
    with opened(path) as store:
        total = examine(store).live_bytes
        with progress(f"Copying to {destination}", total, _size_of(destination, PARTIAL)):
            store.backup(destination)
    note(f"The copy is at {destination}. To use it: equeue restore.")


@click.command()
@click.argument("copy", metavar="BACKUP")
@path_argument
@click.option("--replace", is_flag=True, help="Move the store aside that is at PATH now.")
@yes_option
def restore(copy: str, path: str, replace: bool, yes: bool) -> None:
    """Make a store of a backup.

    PATH is a new or empty directory. With --replace it may be a store that no process has open: it is
    renamed, not deleted. Jobs that were running when the backup was made go to the next worker.
    """
    require_store(copy)
    if replace:
        confirm(f"Move the store at {path} aside, and put the backup in its place?", yes)
    with progress(f"Copying to {path}"):
        aside = _restore.restore(copy, path, replace)
    note(f"The store at {path} is restored.")
    if aside is not None:
        note(f"What was there is at {aside}.")


@click.command(short_help="Read everything, and see whether it fits.")
@path_argument
@json_option
@click.pass_context
def check(ctx: click.Context, path: str, as_json: bool) -> None:
    """Read everything: the file's pages, the indexes against the jobs, the counters against a recount.

    Writers wait meanwhile. On a large store, check a backup instead.
    """
    with opened(path) as store, progress("Reading everything"):
        report = store.check()
    if as_json:
        print_json(
            {
                "ok": report.ok,
                "queues": report.queues,
                "jobs": report.jobs,
                "problems": report.problems,
            }
        )
    else:
        for problem in report.problems:
            say(safe(problem))
        found = "nothing wrong" if report.ok else f"{len(report.problems)} problems"
        say(f"Pages, {report.queues} queues with {report.jobs} jobs, adapters' entries: {found}.")
        if not report.ok:
            note("Stop the users of the store, and restore it from a backup: equeue restore.")
    if not report.ok:
        ctx.exit(Code.PROBLEMS)


@click.command(short_help="Give unused space back to the disk.")
@path_argument
@json_option
def compact(path: str, as_json: bool) -> None:
    """Give unused space back to the file system. No other process may have the store open.

    A store of an older format is brought to the present one.
    """
    with opened(path, upgrade=True) as store:
        total = examine(store).live_bytes
        with progress("Copying", total, _size_of(path, COMPACTED)):
            before, after = store.compact()
    if as_json:
        print_json({"before": before, "after": after})
    else:
        say(f"{size(before)} before, {size(after)} after.")


COMMANDS = [backup, restore, check, compact]
