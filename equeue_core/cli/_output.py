"""Tables, JSON, questions and progress."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._text import as_json, safe
from equeue_core.errors import EQueueError

_GAP = 2
"""Columns of a terminal between those of a table."""

_LEAST = 20
"""Columns of a terminal that the last one of a table has at least."""

_LOOK_EVERY = 0.2
"""Seconds between two looks at how far something is."""

_LINES = 100
"""Lines that are printed at a time."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def say(text: str) -> None:
    """Print a line."""
    click.echo(text)


def note(text: str) -> None:
    """Print a line that is no result."""
    click.echo(safe(text), err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    _print_lines(as_json(value).splitlines())


def _print_lines(lines: Sequence[str]) -> None:
    # Not in one piece: when the reader goes away, an unbuffered stream notices at the next one.
    for start in range(0, len(lines), _LINES):
        click.echo("\n".join(lines[start : start + _LINES]))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "Nothing."
) -> None:
    """Print a table. Columns whose names begin with ``#`` are numbers."""
    listed = [[safe(str(cell)) for cell in row] for row in rows]
    if not listed:
        note(empty)
        return
    # What is empty in all rows is left out.
    used = [number for number in range(len(columns)) if any(row[number] for row in listed)]
    names = [columns[number] for number in used]
    right = [name.startswith("#") for name in names]
    lines = [[name.lstrip("#") for name in names]]
    lines += [[row[number] for number in used] for row in listed]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    if sys.stdout.isatty():
        # Only the last one may be cut off: ids and names are there to be copied.
        left = shutil.get_terminal_size().columns - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(left, _LEAST))
    first, *others = [_aligned(line, widths, right) for line in lines]
    _print_lines([click.style(first, bold=True), *others])


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """One line of a table."""
    padded = []
    for cell, width, is_right in zip(cells, widths, right, strict=True):
        if cell_len(cell) > width:
            padded.append(set_cell_size(cell, width - 1) + "…")
        elif is_right:
            padded.append(" " * (width - cell_len(cell)) + cell)
        else:
            padded.append(set_cell_size(cell, width))
    return (" " * _GAP).join(padded).rstrip()


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, which may have several lines."""
    listed = [(name, safe(value, keep="\n")) for name, value in facts]
    width = max((len(name) for name, _ in listed), default=0) + 2
    for name, value in listed:
        first, *others = value.split("\n")
        click.echo(f"{name:<{width}}{first}".rstrip())
        for line in others:
            click.echo(" " * width + line)


def confirm(question: str, yes: bool) -> None:
    """Ask, unless the user has said so.

    Raises:
        Failure: the answer is no, or there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} There is nobody to ask: say --yes.", Code.REFUSED)
    if not click.confirm(safe(question), err=True):
        raise Failure("Not done.", Code.REFUSED)


@contextmanager
def progress(
    what: str, total: int | None = None, done: Callable[[], int] | None = None
) -> Iterator[None]:
    """Show on a terminal that it goes on.

    Parameters:
        what: what is done.
        total: how much there is to do; None if that is not known.
        done: looks how much of it is done; called now and then, by another thread.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}")]
    if total:
        columns += [BarColumn(), TaskProgressColumn()]
    columns.append(TimeElapsedColumn())
    ended = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(safe(what)), total=total or None)

        def watch() -> None:
            while done is not None and not ended.wait(_LOOK_EVERY):
                # A file that is not there yet, say: the next look will tell.
                with suppress(EQueueError, OSError):
                    bar.update(task, completed=done())

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
