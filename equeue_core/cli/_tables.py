"""The tables of `equeue top`: which columns fit a terminal, and what is in their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from equeue_core import queues as views
from equeue_core.cli._figures import bars, count, fitted, rate, span
from equeue_core.cli._sampling import History, Look, QueueLook, began_at, owner_of

WIDE = 118
"""Columns of a terminal from which on there is room for whole words and numbers."""

_SPARKS = 150
"""Columns from which on there is room for a sparkline in each row, too."""

_SPARK = 12
"""Columns of such a sparkline."""

_SHORT = {
    "pending": "pend",
    "scheduled": "sched",
    "running": "run",
    "failed": "fail",
    "cancelled": "canc",
    "deferred": "defer",
}
"""States where there is no room for them."""

CAME, WENT, WAITS, RUNS, BAD = "#4ba3e3", "#4ebf71", "#ffa62b", "#4ebf71", "#f2667a"
"""Colors of what comes in, goes out, waits, runs, and fails."""

DIM = "#8a8a8a"
"""Of what does not matter now."""

_COLORS = {"pending": WAITS, "running": RUNS, "failed": BAD}
"""Of numbers that are not 0."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        label: what is written above it.
        width: how many columns of the terminal it has; 0: those that are left, for one of them.
        right: whether it is aligned at its right.
        fits: whether it is only as wide as it must be, and `width` is the most.
    """

    label: str
    width: int = 0
    right: bool = False
    fits: bool = False


Cell = str | Text
Rows = Mapping[str, Sequence[Cell]]
"""The cells of each row, by what the row is known by."""


class LiveTable(DataTable[Text]):
    """A table that is shown anew at each look. The cursor stays at its row, and is seen where the keys go.

    Attributes:
        keys: what each row is known by.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open")]

    DEFAULT_CSS = """
    LiveTable {
        scrollbar-gutter: stable; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
        overflow-x: hidden;
    }
    """

    def __init__(self, id: str) -> None:  # noqa: A002 - textual's name for it
        super().__init__(id=id, cursor_type="row", cell_padding=0, show_cursor=False)
        self.keys: list[str] = []
        self._columns: list[Column] = []

    @property
    def room(self) -> int:
        """Columns of the terminal for its own columns."""
        return int(self.scrollable_content_region.width)

    @property
    def selected(self) -> str | None:
        """What the row under the cursor is known by."""
        return self.keys[self.cursor_row] if 0 <= self.cursor_row < len(self.keys) else None

    def show(self, columns: Sequence[Column], rows: Rows, gap: int = 1) -> None:
        """Show these rows instead of those before, with so much room between the columns."""
        fitting = self._fit(columns, rows, gap)
        before, selected = self.scroll_offset, self.selected
        kept = [key for key in self.keys if key in rows]
        if fitting == self._columns and list(rows)[: len(kept)] == kept:
            # Row by row: after a new beginning, the table would be seen scrolled to its top for a moment.
            for key in self.keys:
                if key not in rows:
                    self.remove_row(key)
            self._update(kept, rows)
        else:
            if fitting != self._columns:
                self._begin(fitting, gap)
            self.clear()
            kept = []
        known = set(kept)
        for key, cells in rows.items():
            if key not in known:
                self.add_row(*map(_cell, cells, fitting), key=key)
        self.keys = list(rows)
        if selected is not None and selected in rows and self.has_focus:
            self.move_cursor(row=self.keys.index(selected), animate=False, scroll=False)
        if not kept:
            self.scroll_to(y=before.y, animate=False)

    def _begin(self, columns: list[Column], gap: int) -> None:
        self.clear(columns=True)
        for number, each in enumerate(columns):
            # What is right of the last one is the scroll bar.
            after = gap if number + 1 < len(columns) else 0
            self.add_column(
                _cell(Text(each.label), each), width=each.width + after, key=str(number)
            )
        self._columns = columns

    def _update(self, kept: list[str], rows: Rows) -> None:
        for key in kept:
            for number, (cell, column) in enumerate(zip(rows[key], self._columns, strict=True)):
                shown = _cell(cell, column)
                if self.get_cell(key, str(number)) != shown:
                    self.update_cell(key, str(number), shown)

    def _fit(self, columns: Sequence[Column], rows: Rows, gap: int) -> list[Column]:
        """The columns with the widths that they get here."""
        known = {each.label: each.width for each in self._columns}
        widths = []
        for number, each in enumerate(columns):
            width = each.width
            if each.fits:
                cells = (row[number] for row in rows.values())
                needed = max(map(_length, cells), default=0)
                # Never narrower than it was: all that is right of it would jump.
                needed = max(needed, len(each.label), known.get(each.label, 0))
                width = min(width, needed)
            widths.append(width)
        left = max(0, self.room - sum(widths) - gap * len(columns) + 1)
        return [
            Column(each.label, width or left, each.right)
            for each, width in zip(columns, widths, strict=True)
        ]

    def on_focus(self, _: events.Focus) -> None:
        """Show the cursor."""
        self.show_cursor = True

    def on_blur(self, _: events.Blur) -> None:
        """Hide it: the keys go elsewhere."""
        self.show_cursor = False


def _length(cell: Cell) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(cell)


def _cell(cell: Cell, column: Column) -> Text:
    text = cell if isinstance(cell, Text) else Text(cell)
    if text.cell_len > column.width:
        return Text(fitted(text.plain, column.width), text.style)
    if column.right:
        return Text(" " * (column.width - text.cell_len)).append_text(text)
    return text


# The queues


def queue_columns(history: History, room: int) -> list[Column]:
    """The columns of the table of queues."""
    number = 9 if room >= WIDE else 5
    columns = [Column("queue")]
    if room >= WIDE:
        columns.append(Column("kind", 8))
    for label in ("in/s", "out/s"):
        columns.append(Column(label, 5, right=True))
        if room >= _SPARKS:
            columns.append(Column("", _SPARK))
    for state in _states(history):
        label = state if room >= WIDE else _SHORT.get(state, state)
        columns.append(Column(label, number, right=True))
    columns.append(Column("oldest", 6, right=True))
    return columns


def queue_rows(history: History, room: int) -> dict[str, list[Cell]]:
    """Its rows, by the queues' names."""
    look = history.look
    if look is None:
        return {}
    return {each.name: _queue_row(history, look, each, room) for each in look.queues}


def _queue_row(history: History, look: Look, queue: QueueLook, room: int) -> list[Cell]:
    cells: list[Cell] = [_name(queue)]
    if room >= WIDE:
        cells.append(queue.kind)
    series = history.of(queue.name)
    rates = series.rates()
    for number, values in enumerate((series.came, series.went)):
        cells.append(Text("-", DIM) if rates is None else _number(rate(rates[number])))
        if room >= _SPARKS:
            cells.append(Text(bars(values, _SPARK), (CAME, WENT)[number]))
    for state in _states(history):
        found = queue.counts.get(state)
        text = "" if found is None else count(found, 9 if room >= WIDE else 5)
        cells.append(_number(text, _COLORS.get(state, "")))
    cells.append(span(None if queue.oldest_at is None else look.wall - queue.oldest_at))
    return cells


def _name(queue: QueueLook) -> Text:
    # In front, where no lack of room cuts it off.
    name = fitted(queue.name, 200)
    return Text.assemble(("paused ", WAITS), name) if queue.paused else Text(name)


def _number(text: str, color: str = "") -> Text:
    return Text(text, DIM if text == "0" else color)


def _states(history: History) -> list[str]:
    """The states that the table has: those that only one kind of queue has, if it is there."""
    found = history.look.queues if history.look else ()
    return list(dict.fromkeys([*views.STATES, *(state for each in found for state in each.counts)]))


# Jobs


def key_of(job: views.JobView) -> str:
    """What a job's row is known by."""
    return f"{job.queue}\0{job.job_id}"


def running_columns(room: int) -> list[Column]:
    """The columns of the table of running jobs."""
    wide = room >= WIDE
    return [
        Column("for", 5, right=True),
        Column("queue", 30 if wide else 16, fits=True),
        Column("id", 36 if wide else 8, fits=True),
        Column("owner", 32 if wide else 16, fits=True),
        Column("job"),
    ]


def running_rows(look: Look) -> dict[str, list[Cell]]:
    """Its rows, those that have run longest first."""
    rows: dict[str, list[Cell]] = {}
    for job in look.running:
        began = began_at(job)
        owner = owner_of(job, look)
        rows[key_of(job)] = [
            Text(span(None if began is None else look.wall - began), RUNS),
            *_names(job),
            Text(fitted(owner, 50), BAD if owner.endswith(", dead") else ""),
            fitted(job.summary, 500),
        ]
    return rows


def failed_columns(room: int) -> list[Column]:
    """The columns of the table of failed jobs."""
    wide = room >= WIDE
    columns = [
        Column("ago", 5, right=True),
        Column("queue", 30 if wide else 16, fits=True),
        Column("id", 36 if wide else 8, fits=True),
    ]
    return (
        [*columns, Column("error", 60, fits=True), Column("job")]
        if wide
        else [*columns, Column("error")]
    )


def failed_rows(look: Look, room: int) -> dict[str, list[Cell]]:
    """Its rows, the latest first."""
    rows: dict[str, list[Cell]] = {}
    for job in look.failed:
        ended = job.details.get("finished_at")
        ago = span(None if ended is None else look.wall - ended)
        error = Text(fitted(job.errors[-1].message if job.errors else "", 200), BAD)
        job_cells: list[Cell] = [error, fitted(job.summary, 500)]
        if room < WIDE:
            job_cells = [error if job.errors else fitted(job.summary, 200)]
        rows[key_of(job)] = [ago, *_names(job), *job_cells]
    return rows


def _names(job: views.JobView) -> list[Cell]:
    return [fitted(job.queue, 100), fitted(job.job_id, 100)]


def listed_columns(room: int) -> list[Column]:
    """The columns of a list of one queue's jobs."""
    return [
        Column("id", 36 if room >= WIDE else 16, fits=True),
        Column("attempts", 8, right=True),
        Column("put", 5, right=True),
        Column("job"),
    ]


def listed_rows(jobs: Sequence[views.JobView], now: float) -> dict[str, list[Cell]]:
    """Its rows."""
    rows: dict[str, list[Cell]] = {}
    for job in jobs:
        details: Mapping[str, Any] = job.details
        put_at = details.get("enqueued_at")
        rows[key_of(job)] = [
            fitted(job.job_id, 100),
            str(details.get("attempts", "")),
            span(None if put_at is None else now - put_at),
            fitted(job.summary, 500),
        ]
    return rows
