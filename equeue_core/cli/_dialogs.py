"""What `equeue top` shows in front of its tables: one job, the jobs of a queue, a question."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.table import Column, Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static, Tab, Tabs

from equeue_core import queues as views
from equeue_core._store_handle import Store
from equeue_core.cli._figures import count, fitted
from equeue_core.cli._look import facts_of
from equeue_core.cli._sampling import with_owner
from equeue_core.cli._tables import BAD, DIM, LiveTable, key_of, listed_columns, listed_rows
from equeue_core.cli._text import safe
from equeue_core.cli._watcher import Watcher

LISTED = 100
"""Jobs of a queue that are listed."""

_LONGEST = 20_000
"""Characters of one fact about a job that are shown."""

_BACK: list[BindingType] = [Binding("escape,q", "back", "Back")]


class Dialog(ModalScreen[None]):
    """Something in front of the tables, which Escape closes.

    Parameters:
        watcher: does what has to be done with the store.
    """

    BINDINGS: ClassVar[list[BindingType]] = _BACK

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        width: 1fr; height: 1fr; margin: 1 3; border: round $primary; background: $surface; padding: 0 1;
    }
    """

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()
        self.watcher = watcher

    def action_back(self) -> None:
        """Close it."""
        self.dismiss()

    def box(self, title: str) -> None:
        """Write the title on the frame."""
        self.query_one(Vertical).border_title = Text(fitted(title, 200)).markup

    def change(
        self, job: views.JobView, verb: str, change: Callable[[views.QueueView], Any]
    ) -> None:
        """Change a job, say so, and show it as it is then."""

        def request(store: Store) -> views.JobView:
            view = self.watcher.view(store, job.queue)
            change(view)
            return with_owner(view.job(job.job_id), store)

        def then(changed: views.JobView) -> None:
            self.notify(f"Job {safe(job.job_id)} {verb}.", markup=False)
            if self.is_attached:
                self.changed(changed)

        self.watcher.ask(request, then)

    def changed(self, job: views.JobView) -> None:
        """A job is different now."""


class Question(ModalScreen[bool]):
    """Asks whether something is to be done.

    Parameters:
        text: the question.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q,enter", "answer(False)", "No"),
    ]

    DEFAULT_CSS = """
    Question { align: center middle; }
    Question > Vertical {
        width: 60; max-width: 90%; height: auto; border: round $warning; background: $surface;
        padding: 1 2;
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The question, and the keys that answer it."""
        with Vertical():
            yield Static(Text(self._text))
        yield Footer()

    def action_answer(self, answer: bool) -> None:
        """Close it with the answer."""
        self.dismiss(answer)


class JobDialog(Dialog):
    """All that is known of one job, as `equeue show` tells it.

    Parameters:
        watcher: does what has to be done with the store.
        job: the job.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "requeue", "Requeue"),
        Binding("c", "cancel", "Cancel the job"),
    ]

    def __init__(self, watcher: Watcher, job: views.JobView) -> None:
        super().__init__(watcher)
        self.job = job

    def compose(self) -> ComposeResult:
        """One long text."""
        with Vertical(), VerticalScroll():
            yield Static(id="facts")
        yield Footer()

    def on_mount(self) -> None:
        """Show it."""
        self.changed(self.job)

    def changed(self, job: views.JobView) -> None:
        """Show it as it is now."""
        self.job = job
        self.box(f"Job {job.job_id} of {job.queue}, as of {time.strftime('%H:%M:%S')}")
        self.query_one("#facts", Static).update(facts_table(job))

    def action_requeue(self) -> None:
        """Have it run again."""
        job = self.job
        self.change(job, "is pending again", lambda view: view.requeue(job.job_id))

    def action_cancel(self) -> None:
        """Keep it from running, if that is meant."""
        job = self.job

        def answered(yes: bool | None) -> None:
            if yes:
                self.change(job, "is cancelled", lambda view: view.cancel(job.job_id))

        name = f"{safe(job.job_id)} of {safe(job.queue)!r}"
        self.app.push_screen(Question(f"Cancel job {name}? It will not run."), answered)


def facts_table(job: views.JobView) -> Table:
    """The facts about a job, the names in a column of their own."""
    table = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
    for name, value in facts_of(job):
        shown = value[:_LONGEST]
        if len(value) > _LONGEST:
            shown += f"\n... {len(value) - _LONGEST:,} characters more: equeue show"
        text = Text(safe(shown, keep="\n"), BAD if name == "error" else "")
        table.add_row(Text(name, DIM), text)
    return table


class JobsDialog(Dialog):
    """The first jobs of one queue, state by state.

    Parameters:
        watcher: does what has to be done with the store.
        queue: the queue's name.
        counts: its jobs by state.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "other(-1)", "State before", show=False, priority=True),
        Binding("right", "other(1)", "Next state", key_display="← →", priority=True),
    ]

    DEFAULT_CSS = """
    JobsDialog LiveTable { height: 1fr; }
    JobsDialog Tabs { margin-bottom: 0; }
    """

    def __init__(self, watcher: Watcher, queue: str, counts: dict[str, int]) -> None:
        super().__init__(watcher)
        self._queue = queue
        self._counts = counts
        self._states = list(counts)
        self._jobs: dict[str, views.JobView] = {}
        # What there is most reason to look at.
        wanted = ("running", "failed", "pending", "scheduled", "done")
        self._state = next((state for state in wanted if counts.get(state)), self._states[0])

    def compose(self) -> ComposeResult:
        """The states, and the jobs in one of them."""
        with Vertical():
            tabs = [
                Tab(f"{state} {count(number)}", id=state) for state, number in self._counts.items()
            ]
            yield Tabs(*tabs, active=self._state)
            yield LiveTable(id="listed")
        yield Footer()

    def on_mount(self) -> None:
        """Let the keys go to the jobs."""
        self.box(f"Jobs of {self._queue}")
        self.query_one(LiveTable).focus()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Look up the jobs in another state."""
        state = self._state = event.tab.id or self._states[0]
        self.watcher.ask(
            lambda store: list(self.watcher.view(store, self._queue).jobs(state, LISTED)),
            lambda jobs: self._show(state, jobs),
        )

    def _show(self, state: str, jobs: Sequence[views.JobView]) -> None:
        if state != self._state or not self.is_attached:
            return
        self._jobs = {key_of(job): job for job in jobs}
        table = self.query_one(LiveTable)
        table.show(listed_columns(table.room), listed_rows(jobs, time.time()), gap=2)
        number = self._counts[state]
        shown = f", the first {LISTED} of {number:,} {state}" if number > LISTED else ""
        self.box(f"Jobs of {self._queue}{shown}")

    def action_other(self, step: int) -> None:
        """Go to the next state, or the one before."""
        tabs = self.query_one(Tabs)
        tabs.action_next_tab() if step > 0 else tabs.action_previous_tab()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a job."""
        job = self._jobs.get(event.row_key.value or "")
        if job is not None:
            open_job(self, self.watcher, job.queue, job.job_id)


def open_job(screen: Any, watcher: Watcher, queue: str, job_id: str) -> None:
    """Look a job up, and show it in front of `screen`, unless something else is in front of it by then."""

    def then(job: views.JobView) -> None:
        if screen.app.screen is screen:
            screen.app.push_screen(JobDialog(watcher, job))

    watcher.ask(lambda store: with_owner(watcher.view(store, queue).job(job_id), store), then)
