"""The shop: orders are confirmed by mail, also if workers were killed or mails could not be sent."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core import Queue
from tests.examples._browser import Answer, Browser
from tests.examples._example import Example, Terminal, wait_until

pytestmark = pytest.mark.once


@pytest.fixture
def example(tmp_path: Path) -> Example:
    """With its database."""
    example = Example("django-dramatiq", tmp_path)
    status, printed = example.run("database")
    assert status == 0, printed
    return example


@pytest.fixture
def web(example: Example, browser: Browser) -> Iterator[Terminal]:
    with example.running("web") as terminal:
        browser.wait_for_server(terminal)
        yield terminal


def submit(browser: Browser, email: str = "somebody@example.org") -> Answer:
    """Fill in the form."""
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/").text)
    assert token is not None
    return browser.post_form("/", csrfmiddlewaretoken=token[1], item="tea", email=email)


def order(browser: Browser) -> str:
    """The page of a new order."""
    answer = submit(browser)
    assert (answer.status, "Order 1" in answer.text or "Order 2" in answer.text) == (200, True)
    return answer.url


def mails(example: Example) -> list[str]:
    return [file.read_text() for file in (example.directory / "data" / "mails").iterdir()]


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody can read or write it for the length of a block."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


def test_the_readme_from_its_first_command_to_its_last(
    example: Example, browser: Browser, web: Terminal
) -> None:
    assert browser.get("/orders/1/").status == 404
    assert "Enter a valid email address." in submit(browser, email="nobody").text
    with example.running("workers") as workers:
        page = order(browser)
        browser.wait_for_text(page, "confirmed: a mail to somebody@example.org was sent")
        (mail,) = mails(example)
        assert "Subject: Order 1: tea" in mail
        assert workers.ctrl_c() == 0
    waits = order(browser)
    assert "waiting for a worker" in browser.get(waits).text
    example.check("no mails")
    with example.running("workers") as workers:
        browser.wait_for_text(waits, "not confirmed yet, it will be tried again: ")
        example.check("mails again")
        browser.wait_for_text(waits, "confirmed: a mail")
        assert workers.terminate() == 0
    (mail,) = mails(example)
    assert "Subject: Order 2: tea" in mail
    assert web.ctrl_c() == 0


@pytest.mark.usefixtures("web")
def test_killed_workers_forget_no_order(example: Example, browser: Browser) -> None:
    page = order(browser)
    queue = Queue(example.directory / "data" / "queue", "dramatiq:default")
    with locked(example.directory / "db.sqlite3"), example.running("workers") as workers:
        wait_until(lambda: queue.stats()["running"] == 1, "the task is in hand")
        workers.kill()
    with example.running("workers"):
        browser.wait_for_text(page, "confirmed: a mail")
    assert len(mails(example)) == 1
