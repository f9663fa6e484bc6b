"""The screen of `equeue top`, at two sizes, on stores of each kind."""

from __future__ import annotations

import asyncio
import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dramatiq
import pytest
import rq

pytest.importorskip("textual")

from textual.pilot import Pilot

from equeue_core import Queue, Record, Store
from equeue_core.cli import _screen, _top
from equeue_core.cli._dialogs import JobDialog, JobsDialog, Question
from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._screen import TopApp, TopScreen
from equeue_core.cli._tables import LiveTable
from equeue_dramatiq import LMDBBroker
from equeue_rq import LMDBRedis
from tests.cli.conftest import Run
from tests.cli.test_watcher import remove
from tests.contract.helpers import WATCHDOG

NARROW, WIDE = (80, 24), (160, 50)

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x50"])

OFTEN, NEVER = 0.1, 3600.0
"""Seconds between two looks. After whatever a key does there is one, too."""

_CHARACTER, _LINE = 12.2, 24.4
"""Width of a character in textual's screenshots, and height of a line."""

_TEXT = re.compile(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]* clip-path[^>]*>([^<]*)</text>')


class Shown:
    """The screen in a test.

    Attributes:
        app: the application.
        pilot: presses its keys.
    """

    def __init__(self, app: TopApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    def lines(self) -> list[str]:
        """What is to be seen."""
        rows: list[list[str]] = [[] for _ in range(self.app.size.height)]
        for x, y, text in _TEXT.findall(self.app.export_screenshot()):
            row = rows[round((float(y) - 20) / _LINE)]
            at = round(float(x) / _CHARACTER)
            row += " " * (at - len(row))
            row[at:] = html.unescape(text).replace("\xa0", " ")
        return ["".join(row).rstrip() for row in rows]

    def line(self, *words: str) -> str:
        """The first line with these words; an empty string if there is none."""
        found = (line for line in self.lines() if all(word in line for word in words))
        return next(found, "")

    def sees(self, *words: str) -> bool:
        """Whether there is a line with these words."""
        return bool(self.line(*words))

    def row(self, queue: str) -> str:
        """The line of a queue in the table of queues."""
        return next((line for line in self.lines() if line.startswith(f"{queue} ")), "")

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + WATCHDOG
        while not condition():
            assert time.monotonic() < deadline, "\n".join(self.lines())
            await self.pilot.pause(0.01)

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    def table(self, name: str) -> LiveTable:
        """One of the tables."""
        return self.app.screen.query_one(f"#{name}", LiveTable)

    async def choose(self, table: str, key: str) -> None:
        """Move the cursor to a row."""
        self.table(table).focus()
        await self.until(lambda: self.table(table).has_focus)
        await self.until(lambda: key in self.table(table).keys)
        found = self.table(table)
        found.move_cursor(row=found.keys.index(key))
        await self.until(lambda: found.selected == key)


Story = Callable[[Shown], Coroutine[Any, Any, None]]


def play(path: Path, story: Story, size: tuple[int, int] = NARROW, interval: float = NEVER) -> Any:
    """Show a store, and have a story happen; what the screen ends with."""

    async def run() -> Any:
        app = TopApp(str(path), interval)
        try:
            async with app.run_test(size=size, notifications=True) as pilot:
                shown = Shown(app, pilot)
                await shown.until(lambda: isinstance(app.screen, TopScreen))
                await shown.until(lambda: shown.sees("Queues"))
                await story(shown)
                if app.is_running:
                    app.exit()
        finally:
            app.watcher.stop(WATCHDOG)
        return app.return_value

    return asyncio.run(run())


@pytest.fixture
def held(store: Path) -> Iterator[Record]:
    """A job of ``mail`` that this process runs."""
    with Queue(store, "mail") as queue:
        yield queue.get(timeout=0)


@pytest.fixture
def mixed(store: Path, held: Record) -> Path:
    """The store with jobs of Dramatiq and RQ, too."""
    broker = LMDBBroker(store, middleware=[])
    for number in range(3):
        broker.enqueue(dramatiq.Message("default", "send", (number,), {}, {}))
    broker.close()
    with LMDBRedis(store) as connection:
        queue = rq.Queue(connection=connection)
        queue.enqueue("os.path.nope", 1, job_id="the-failed-one")
        worker = rq.SimpleWorker([queue], connection=connection)
        worker.work(burst=True, logging_level="CRITICAL")
        queue.enqueue("os.getcwd", job_id="the-pending-one")
    return store


# What is to be seen


@pytest.mark.contract("CLI-08")
@SIZES
def test_all_of_it(size: tuple[int, int], mixed: Path, held: Record) -> None:
    wide = size == WIDE

    async def story(shown: Shown) -> None:
        await shown.until(lambda: shown.sees("in 0/s", "out 0/s"))
        await shown.until(lambda: all(map(shown.row, ("mail", "dramatiq:default", "rq:default"))))
        lines = shown.lines()
        assert max(map(len, lines)) <= size[0]
        assert f"equeue top {str(mixed)[:20]}" in lines[0]
        assert shown.sees("pending 5", "oldest ")
        for title in ("Queues 3", "Running 1", "Failed 2"):
            assert shown.sees(title), title
        names = ["queue", "in/s", "out/s"]
        names += (
            ["kind", "pending", "scheduled", "running", "done", "failed", "cancelled", "deferred"]
            if wide
            else ["pend", "sched", "run", "done", "fail", "canc", "defer"]
        )
        header = shown.line(*names, "oldest").split()
        column = {name: header.index(name) - (2 if wide else 0) for name in header}
        for name, kind, pending, failed in (
            ("mail", "core", "1", "1"),
            ("dramatiq:default", "dramatiq", "3", "0"),
            ("rq:default", "rq", "1", "1"),
        ):
            row = shown.row(name)
            assert kind in row or not wide
            # The sparklines are words, too.
            cells = [cell for cell in row.split() if not set(cell) <= set("▁▂▃▄▅▆▇█")]
            offset = 2 if wide else 0
            assert cells[column["pending" if wide else "pend"] + offset] == pending, row
            assert cells[column["failed" if wide else "fail"] + offset] == failed, row
        running = shown.line(f"{os.getpid()}@", "4@example.org")
        assert running.split()[1:3] == ["mail", str(held.job_id)]
        assert shown.sees("mail", "1", "ValueError: no such mailbox")
        assert shown.sees("rq:default", "the-failed-one" if wide else "the-fai…", "nope")
        # The footer comes a moment later.
        keys = ("Quit", "Pause", "Requeue failed", "Open")
        await shown.until(lambda: all(key in shown.lines()[-1] for key in keys))

    play(mixed, story, size, OFTEN)


@pytest.mark.contract("CLI-08")
def test_it_goes_on(store: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.until(lambda: shown.sees("in 0/s"))
        with Queue(store, "mail") as mail:
            mail.put_many(["new"] * 500)
            await shown.until(lambda: shown.sees("pending 502"))
            await shown.until(lambda: not shown.sees("in 0/s"))
            with Queue(store, "another") as another:
                another.put("x")
                another.get(timeout=0).fail("this has just gone wrong")
            await shown.until(lambda: shown.sees("another", "this has just gone wrong"))
            # The latest is the first.
            assert shown.table("failed").selected == "another\x001"
            record = mail.get(timeout=0)
            await shown.until(lambda: shown.sees("Running 1"))
            record.ack()
            await shown.until(lambda: shown.sees("Running 0"))

    play(store, story, interval=OFTEN)


def test_a_store_without_queues(store_path: Path) -> None:
    with Store(store_path) as store:
        assert store.queues() == []

    async def story(shown: Shown) -> None:
        await shown.until(lambda: shown.sees("Queues 0"))
        await shown.press("p", "r", "enter", "tab", "enter", "down")
        assert shown.sees("Failed 0")
        assert isinstance(shown.app.screen, TopScreen)

    play(store_path, story)


def test_many_queues_and_jobs(store_path: Path) -> None:
    with Store(store_path) as store:
        for number in range(60):
            store.queue(f"queue-{number:02}").put(number)
        last = store.queue("queue-59")
        last.put_many(range(300))
        records = last.get_many(200, timeout=0)
        for record in records[:60]:
            record.fail("bad")

        async def story(shown: Shown) -> None:
            await shown.until(lambda: shown.sees("Running 140: the first 100"))
            assert shown.sees("Failed 60: the latest 50")
            await shown.choose("queues", "queue-59")
            await shown.until(lambda: shown.sees("queue-59", "101"))
            # The cursor stays where it is, whatever the looks bring.
            store.queue("a-new-one").put(1)
            await shown.until(lambda: shown.sees("Queues 61"))
            assert shown.table("queues").selected == "queue-59"
            assert shown.sees("queue-59", "101"), "it stays where it was scrolled to"
            assert shown.table("queues").keys[-1] == "a-new-one"

        play(store_path, story, interval=OFTEN)


def test_a_terminal_that_changes_its_size(mixed: Path) -> None:
    async def story(shown: Shown) -> None:
        assert not shown.sees("cancelled")
        await shown.pilot.resize_terminal(*WIDE)
        await shown.until(lambda: shown.sees("cancelled", "scheduled"))
        await shown.pilot.resize_terminal(60, 16)
        await shown.until(lambda: shown.sees("canc") and not shown.sees("cancelled"))
        assert max(map(len, shown.lines())) <= 60

    play(mixed, story)


@pytest.mark.contract("CLI-06")
def test_names_and_errors_are_made_harmless(tmp_path: Path) -> None:
    path = tmp_path / "[red]\x1b[31m"
    with Store(path) as store:
        queue = store.queue("[b]\x1b[2J")
        queue.put("payload \x1b[3J \u202e [/b]")
        queue.get(timeout=0).fail("error \x1b[4J [/i]")

    async def story(shown: Shown) -> None:
        await shown.until(lambda: shown.sees("Failed 1"))
        assert "\x1b" not in shown.app.export_screenshot()
        assert shown.sees("[b]\\x1b[2J", "error \\x1b[4J [/i]")
        await shown.press("p")
        await shown.until(lambda: shown.sees("paused [b]\\x1b[2J"))
        await shown.choose("failed", "[b]\x1b[2J\x001")
        await shown.press("enter")
        await shown.until(lambda: shown.sees("payload \\x1b[3J \\u202e [/b]"))
        assert shown.sees("Job 1 of [b]\\x1b[2J")
        assert "\x1b" not in shown.app.export_screenshot()

    play(path, story, WIDE)


# Keys


@pytest.mark.contract("CLI-12")
def test_a_queue_is_paused_and_resumed(mixed: Path) -> None:
    with Store(mixed) as store:

        async def story(shown: Shown) -> None:
            await shown.choose("queues", "mail")
            await shown.press("p")
            await shown.until(lambda: shown.sees("The queue 'mail' is paused"))
            assert store.queue("mail").paused
            await shown.until(lambda: shown.sees("paused mail"))
            await shown.press("p")
            await shown.until(lambda: shown.sees("hands out jobs"))
            assert not store.queue("mail").paused
            await shown.until(lambda: not shown.sees("paused mail"))

        play(mixed, story)


@pytest.mark.contract("CLI-12")
def test_a_queue_that_cannot_be_paused(mixed: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("queues", "rq:default")
        await shown.press("p")
        await shown.until(lambda: shown.sees("RQ cannot pause one queue"))
        assert shown.sees("rq suspend")

    play(mixed, story)


@pytest.mark.contract("CLI-12")
@pytest.mark.parametrize(
    ("queue", "table", "key"),
    [
        ("mail", "failed", "mail\x001"),
        ("rq:default", "queues", "rq:default"),
    ],
)
def test_what_failed_is_requeued(queue: str, table: str, key: str, mixed: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose(table, key)
        await shown.press("r")
        await shown.until(lambda: shown.sees("Requeued 1 failed jobs"))
        await shown.until(lambda: shown.sees("Failed 1"))
        await shown.until(lambda: shown.sees("pending 6"))

    play(mixed, story)


@pytest.mark.contract("CLI-12")
def test_a_job_is_opened(mixed: Path, held: Record) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("running", f"mail\0{held.job_id}")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.app.screen, JobDialog))
        await shown.until(lambda: shown.sees('"to": "4@example.org"'))
        assert shown.sees("state", "running")
        assert shown.sees("owner", f"{os.getpid()}@")
        assert shown.sees(f"Job {held.job_id} of mail")
        await shown.press("escape")
        await shown.until(lambda: isinstance(shown.app.screen, TopScreen))
        await shown.choose("failed", "rq:default\0the-failed-one")
        await shown.press("enter")
        await shown.until(lambda: shown.sees("id", "the-failed-one"))
        await shown.until(lambda: shown.sees('"function": "os.path.nope"'))
        await shown.press("r")
        await shown.until(lambda: shown.sees("Job the-failed-one is pending again"))
        await shown.until(lambda: shown.sees("state", "pending"))

    play(mixed, story)


@pytest.mark.contract("CLI-04", "CLI-12")
@pytest.mark.parametrize(("answer", "state"), [("enter", "pending"), ("y", "cancelled")])
def test_a_job_is_cancelled_if_that_is_meant(answer: str, state: str, mixed: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("queues", "dramatiq:default")
        await shown.press("enter")
        await shown.until(lambda: shown.sees("Jobs of dramatiq:default"))
        await shown.until(lambda: shown.sees("send(2)"))
        await shown.press("down", "enter")
        await shown.until(lambda: isinstance(shown.app.screen, JobDialog))
        await shown.press("c")
        await shown.until(lambda: shown.sees("Cancel job 2 of 'dramatiq:default'?"))
        assert isinstance(shown.app.screen, Question)
        await shown.press(answer)
        await shown.until(lambda: isinstance(shown.app.screen, JobDialog))
        if answer == "y":
            await shown.until(lambda: shown.sees("Job 2 is cancelled"))
        await shown.until(lambda: shown.sees("state", state))

    play(mixed, story)
    with Queue(mixed, "dramatiq:default") as queue:
        assert queue.job(2).state == state


def test_the_jobs_of_a_queue_state_by_state(mixed: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("queues", "mail")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.app.screen, JobsDialog))
        # What runs is of most interest.
        await shown.until(lambda: shown.sees("4@example.org"))
        await shown.press("left")
        await shown.until(lambda: shown.sees("later"))
        await shown.press("left")
        await shown.until(lambda: shown.sees("5@example.org"))
        await shown.press("right", "right", "right")
        await shown.until(lambda: shown.sees("2@example.org"))
        await shown.press("escape")
        await shown.until(lambda: isinstance(shown.app.screen, TopScreen))

    play(mixed, story)


def test_a_job_is_opened_once_however_often_it_is_asked_for(store: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("failed", "mail\x001")
        with shown.app.watcher.at_rest(WATCHDOG):
            await shown.press("enter", "enter", "enter")
        # Answered in their order, and this one last.
        answers: list[None] = []
        shown.app.watcher.ask(lambda store: None, answers.append)
        await shown.until(lambda: answers)
        await shown.until(lambda: isinstance(shown.app.screen, JobDialog))
        await shown.press("escape")
        await shown.until(lambda: isinstance(shown.app.screen, TopScreen))

    play(store, story)


def test_a_job_that_is_gone_meanwhile(store: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("failed", "mail\x001")
        with Queue(store, "mail") as mail:
            mail.purge("failed")
        await shown.press("enter")
        await shown.until(lambda: shown.sees("no job 1"))
        assert isinstance(shown.app.screen, TopScreen)

    # No look comes in between.
    play(store, story)


def test_a_job_is_changed_after_its_window_was_closed(store: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.choose("failed", "mail\x001")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.app.screen, JobDialog))
        with shown.app.watcher.at_rest(WATCHDOG):
            await shown.press("r", "escape")
            await shown.until(lambda: isinstance(shown.app.screen, TopScreen))
        await shown.until(lambda: shown.sees("Job 1 is pending again"))

    play(store, story)


def test_q_ends_it(store: Path) -> None:
    async def story(shown: Shown) -> None:
        await shown.press("q")
        await shown.until(lambda: not shown.app.is_running)

    assert play(store, story) is None


# What goes wrong


@pytest.mark.contract("CLI-11")
def test_a_store_that_is_removed_ends_it(store: Path) -> None:
    async def story(shown: Shown) -> None:
        remove(store)
        await shown.until(lambda: not shown.app.is_running)

    ending = play(store, story, interval=OFTEN)
    assert isinstance(ending, Failure)
    assert ending.exit_code == Code.NOT_FOUND
    assert "no such directory" in ending.message


@pytest.mark.contract("CLI-11")
def test_a_trouble_that_passes(mixed: Path, held: Record) -> None:
    async def story(shown: Shown) -> None:
        screen = shown.app.screen
        assert isinstance(screen, TopScreen)
        screen.troubled("another process has the store \x1b for itself")
        await shown.until(lambda: shown.sees("has the store \\x1b for itself"))
        shown.app.watcher.ask(lambda store: None, lambda result: None)
        await shown.until(lambda: not shown.sees("for itself"))

    play(mixed, story)


def test_a_store_that_does_not_answer(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_screen, "_PATIENCE", -3600.0)

    async def story(shown: Shown) -> None:
        await shown.until(lambda: shown.sees("has not answered for"))

    play(store, story, interval=3599.0)


def test_a_fault_of_the_screen_is_an_error(
    store: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: TopApp) -> None:
        self.exit(return_code=1)  # as it does after an exception

    monkeypatch.setattr(_top, "_is_terminal", lambda: True)
    monkeypatch.setattr(TopApp, "run", run)
    assert "broken off" in equeue("top", store, code=Code.OTHER).stderr


@pytest.mark.contract("CLI-02", "CLI-05")
def test_mistakes(store: Path, tmp_path: Path, equeue: Run) -> None:
    assert "no such directory" in equeue("top", tmp_path / "typo", code=Code.NOT_FOUND).stderr
    assert not (tmp_path / "typo").exists()
    for interval in ("0", "-1", "0.01", "nan", "x", "1e9"):
        equeue("top", store, "--interval", interval, code=Code.USAGE)
    output = equeue("top", store, code=Code.USAGE).stderr
    assert "terminal" in output
    assert "equeue stats" in output
    assert "--json" in output


@pytest.mark.contract("CLI-05")
@pytest.mark.parametrize("redirected", ["stdin", "stdout", "stderr"])
def test_each_of_its_streams_has_to_be_a_terminal(
    redirected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda name=name: name != redirected))
    assert not _top._is_terminal()
    monkeypatch.setattr(sys, redirected, SimpleNamespace(isatty=lambda: True))
    assert _top._is_terminal()


@pytest.mark.contract("CLI-05")
def test_without_textual(store: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_top, "_is_terminal", lambda: True)
    for name in [name for name in sys.modules if name.partition(".")[0] == "textual"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "equeue_core.cli._screen")
    monkeypatch.delattr("equeue_core.cli._screen")
    output = equeue("top", store, code=Code.MISSING).stderr
    assert "pip install textual" in output


@pytest.mark.once
def test_other_commands_do_not_pay_for_the_screen() -> None:
    program = (
        "import sys, equeue_core.cli._app; "
        "print([name for name in sys.modules if name.partition('.')[0] == 'textual'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
