"""The screen of `equeue top`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header, Sparkline, Static

from equeue_core._store_handle import Store
from equeue_core.cli import _tables as tables
from equeue_core.cli import _watcher
from equeue_core.cli._dialogs import JobsDialog, open_job
from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._figures import count, fitted, rate, span
from equeue_core.cli._sampling import History, Look
from equeue_core.cli._tables import LiveTable
from equeue_core.cli._text import safe, size
from equeue_core.cli._watcher import Watcher

_PATIENCE = 3.0
"""Seconds without an answer of the store, besides the interval, after which that is said."""

Ending = Failure | signal.Signals
"""What has ended the screen, other than the user's wish: an error, or a signal."""


class Told(Message):
    """The watcher has something to tell."""

    def __init__(self, event: _watcher.Event) -> None:
        super().__init__()
        self.event = event


class Gauge(Vertical):
    """A number, and how it was.

    Parameters:
        name: what it is; it is the widget's id, too.
        color: of the history.
    """

    DEFAULT_CSS = """
    Gauge { width: 1fr; height: auto; padding-left: 1; }
    Gauge > Static { height: 1; }
    Gauge > Sparkline { height: 2; }
    .-tall Gauge > Sparkline { height: 4; }
    """

    def __init__(self, name: str, color: str) -> None:
        super().__init__(id=name)
        self._heading = name
        self._number = Static(Text(name, tables.DIM))
        parsed = Color.parse(color)
        self._line = Sparkline(min_color=parsed, max_color=parsed)

    def compose(self) -> ComposeResult:
        """The number above its history."""
        yield self._number
        yield self._line

    def show(self, value: str, values: Sequence[float], more: str = "") -> None:
        """Show it, and the values that it had before, the latest last."""
        self._number.update(
            Text.assemble((f"{self._heading} ", tables.DIM), (value, "bold"), (more, tables.DIM))
        )
        width = self._line.size.width
        latest = list(values)[-max(width - 1, 1) :]
        # From 0 on: the lowest of the values is where the bars begin.
        self._line.data = [0.0] * (width - len(latest)) + latest


class TopScreen(Screen[None]):
    """All queues, what runs and what fails.

    Parameters:
        watcher: looks at the store.
        look: the first look at it.
        interval: seconds between two of them.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit"),
        Binding("p", "pause", "Pause/resume queue"),
        Binding("r", "requeue", "Requeue failed"),
        Binding("tab", "app.focus_next", "Next table"),
    ]

    DEFAULT_CSS = """
    TopScreen HeaderIcon { display: none; }
    TopScreen > #gauges { height: auto; }
    TopScreen > LiveTable {
        border-top: solid $primary-darken-1; background: $background;
        border-title-color: $text; border-title-style: bold;
    }
    TopScreen > LiveTable:focus { border-top: solid $accent; }
    TopScreen > #queues { height: auto; max-height: 45%; min-height: 4; }
    TopScreen > #running { height: auto; min-height: 3; max-height: 33%; }
    TopScreen > #failed { height: 1fr; }
    TopScreen > #trouble { display: none; background: $error; color: $text; padding: 0 1; }
    TopScreen > #trouble.-shown { display: block; }
    """

    def __init__(self, watcher: Watcher, look: Look, interval: float) -> None:
        super().__init__()
        self.watcher = watcher
        self.history = History()
        self._first = look
        self._interval = interval
        self._heard_at = time.monotonic()
        self._trouble = ""
        self._trouble_line = Static(id="trouble")
        self._in_gauge = Gauge("in", tables.CAME)
        self._out_gauge = Gauge("out", tables.WENT)
        self._pending_gauge = Gauge("pending", tables.WAITS)
        self._queue_table = LiveTable("queues")
        self._running_table = LiveTable("running")
        self._failed_table = LiveTable("failed")

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Header(show_clock=True)
        with Horizontal(id="gauges"):
            yield self._in_gauge
            yield self._out_gauge
            yield self._pending_gauge
        yield self._queue_table
        yield self._running_table
        yield self._failed_table
        yield self._trouble_line
        yield Footer()

    def on_mount(self) -> None:
        """Begin."""
        self.history.add(self._first)
        self._queue_table.focus()
        self.set_interval(0.5, self._notice_silence)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.show()
        self.watcher.start()

    def on_resize(self, event: Resize) -> None:
        """Use the room that there is."""
        self.set_class(event.size.height >= 36, "-tall")
        self.call_after_refresh(self.show)

    # What the watcher tells

    def seen(self, look: Look) -> None:
        """Show a new look."""
        self.history.add(look)
        self._heard()
        self.show()

    def troubled(self, text: str) -> None:
        """Show why there is none."""
        self._heard(text)

    def _heard(self, trouble: str = "") -> None:
        self._heard_at = time.monotonic()
        self._show_trouble(trouble)

    def _notice_silence(self) -> None:
        silent = time.monotonic() - self._heard_at - self._interval
        if silent > _PATIENCE:
            self._show_trouble(
                f"The store has not answered for {span(silent)}: another process has locked it."
            )

    def _show_trouble(self, text: str) -> None:
        if text == self._trouble:
            return
        self._trouble = text
        self._trouble_line.update(Text(safe(text)))
        self._trouble_line.set_class(bool(text), "-shown")

    # Showing

    def show(self) -> None:
        """Show what is known."""
        look = self.history.look
        if look is None:
            return
        self.app.sub_title = self._about(look)
        self._show_gauges(look)
        self._queue_table.border_title = f"Queues {len(look.queues)}"
        self._running_table.border_title = _title(
            "Running", look.total("running"), "the first", len(look.running)
        )
        self._failed_table.border_title = _title(
            "Failed", look.total("failed"), "the latest", len(look.failed)
        )
        room = self._queue_table.room
        gap = 2 if room >= tables.WIDE else 1
        self._queue_table.show(
            tables.queue_columns(self.history, room), tables.queue_rows(self.history, room)
        )
        self._running_table.show(tables.running_columns(room), tables.running_rows(look), gap)
        self._failed_table.show(tables.failed_columns(room), tables.failed_rows(look, room), gap)

    def _about(self, look: Look) -> str:
        workers = "1 worker" if look.workers == 1 else f"{look.workers} workers"
        return f"{size(look.file_bytes)}, sync {look.sync}, {workers}"

    def _show_gauges(self, look: Look) -> None:
        all_queues = self.history.all
        rates = all_queues.rates()
        came, went = ("-", "-") if rates is None else (f"{rate(each)}/s" for each in rates)
        self._in_gauge.show(came, all_queues.came)
        self._out_gauge.show(went, all_queues.went)
        oldest = [each.oldest_at for each in look.queues if each.oldest_at is not None]
        more = f" oldest {span(look.wall - min(oldest))}" if oldest else ""
        pending = count(look.total("pending"), 11 if self.size.width >= tables.WIDE else 5)
        self._pending_gauge.show(pending, self.history.pending, more)

    # Keys

    def _chosen_queue(self) -> str | None:
        """The queue of the row under the cursor."""
        table = self.focused
        selected = table.selected if isinstance(table, LiveTable) else None
        return None if selected is None else selected.partition("\0")[0]

    def action_pause(self) -> None:
        """Pause a queue, or resume it."""
        name = self._chosen_queue()
        if name is None:
            return

        def request(store: Store) -> bool:
            view = self.watcher.view(store, name)
            paused = view.paused()
            view.resume() if paused else view.pause()
            return not paused

        def then(paused: bool) -> None:
            told = "is paused: p resumes it" if paused else "hands out jobs again"
            self.notify(f"The queue {safe(name)!r} {told}.", markup=False)

        self.watcher.ask(request, then)

    def action_requeue(self) -> None:
        """Requeue all failed jobs of a queue."""
        name = self._chosen_queue()
        if name is None:
            return
        self.watcher.ask(
            lambda store: self.watcher.view(store, name).requeue_failed(),
            lambda number: self.notify(
                f"Requeued {number:,} failed jobs of {safe(name)!r}.", markup=False
            ),
        )

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a job, or a queue's jobs."""
        name, is_job, job_id = (event.row_key.value or "").partition("\0")
        if is_job:
            open_job(self, self.watcher, name, job_id)
            return
        look = self.history.look
        for each in look.queues if look else ():
            if each.name == name:
                self.app.push_screen(JobsDialog(self.watcher, name, dict(each.counts)))


def _title(what: str, number: int, which: str, shown: int) -> str:
    return f"{what} {number:,}" + (f": {which} {shown}" if number > shown else "")


class TopApp(App[Ending]):
    """`equeue top`.

    Parameters:
        path: the store's directory.
        interval: seconds between two looks.
        look: the first one; None: it is taken here.

    Raises:
        Failure, EQueueError, OSError: the store cannot be used.
    """

    ENABLE_COMMAND_PALETTE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "Interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, priority=True),
    ]

    def __init__(self, path: str, interval: float) -> None:
        super().__init__()
        self.title = f"equeue top {fitted(path, 40)}"
        self.watcher = Watcher(path, interval, lambda event: self.post_message(Told(event)))
        self.animation_level = "none"  # each is many frames, and the terminal may be far away
        self._is_ending = False
        self._top = TopScreen(self.watcher, self.watcher.look(), interval)

    def on_mount(self) -> None:
        """Begin."""
        if not self.is_headless:
            self._catch_signals()
            self.set_interval(1.0, self._notice_hangup)
        self.push_screen(self._top)

    def _catch_signals(self) -> None:
        """End by them as by a key: the terminal is to be as it was."""
        import asyncio

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.exit, number)

    def _notice_hangup(self) -> None:
        """End when the terminal is gone. SIGHUP does that, unless it is ignored (nohup): then textual would
        read the end of its input for ever, as fast as it can.
        """
        if not sys.stdin.isatty():
            _end_by(signal.SIGHUP)  # at once: textual would wait for what it cannot write any more

    def action_suspend_process(self) -> None:
        """Stop the process until it is continued, but not in the middle of a look."""
        with self.watcher.at_rest():
            super().action_suspend_process()

    def action_interrupt(self) -> None:
        """End as Ctrl-C ends other commands."""
        self.exit(signal.SIGINT)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """End. What the watcher tells from now on is of no interest."""
        self._is_ending = True
        super().exit(*arguments, **options)

    def on_told(self, message: Told) -> None:
        """Do with it what has to be done."""
        event = message.event
        if self._is_ending:
            return
        if isinstance(event, _watcher.Seen):
            self._top.seen(event.look)
        elif isinstance(event, _watcher.Answered):
            event.then(event.result)
        elif isinstance(event, _watcher.Refused):
            self.notify(safe(event.text), severity="error", markup=False, timeout=10)
        elif isinstance(event, _watcher.Broken):
            raise event.error
        elif event.lasting:
            self.exit(Failure(event.text, event.code))
        else:
            self._top.troubled(event.text)


def run(path: str, interval: float) -> None:
    """Show a store until the user has seen enough.

    Parameters:
        path: its directory.
        interval: seconds between two looks.

    Raises:
        Failure, EQueueError, OSError: the store cannot be used, now or at a later look.
        KeyboardInterrupt: Ctrl-C.
    """
    app = TopApp(path, interval)
    ending = app.run()
    app.watcher.stop()
    if app.return_code:  # textual has printed what went wrong
        raise Failure("the screen has broken off: see above", Code.OTHER)
    if isinstance(ending, Failure):
        raise ending
    if ending is signal.SIGINT:
        raise KeyboardInterrupt
    if ending is not None:
        _end_by(ending)


def _end_by(number: signal.Signals) -> None:
    """End the process, as the signal does where nobody handles it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
