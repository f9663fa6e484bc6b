"""Fixtures of the tests with RQ's command line."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Store

from .._ledger import assert_sound
from .._watch import Gate, Watch
from ._application import Application
from ._commands import Command, Starter

if not sys.platform.startswith("linux"):
    collect_ignore_glob = ["test_*.py"]  # /proc


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    """The application in the test's own process, to enqueue and to look."""
    application = Application(tmp_path)
    application.connection.ping()
    yield application
    application.close()


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """What the jobs wrote down."""
    journal = tmp_path / "journal"
    journal.touch()
    return Watch(journal)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """What the jobs wait for."""
    gate = Gate(tmp_path)
    yield gate
    gate.close()


@pytest.fixture
def other_gate(tmp_path: Path) -> Iterator[Gate]:
    """What is left behind by jobs waits for it."""
    gate = Gate(tmp_path, "other")
    yield gate
    gate.close()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test has failed."""
    report = yield
    item.stash[FAILED] = report.failed
    return report


@pytest.fixture
def start(
    request: pytest.FixtureRequest, application: Application, gate: Gate, other_gate: Gate
) -> Iterator[Starter]:
    """Starts commands; what is left of them is killed, and if the test has failed, tells where it is."""
    commands: list[Command] = []

    def begin(*arguments: str, **options: Any) -> Command:
        commands.append(Command(application, *arguments, **options))
        return commands[-1]

    yield begin
    if request.node.stash.get(FAILED, False):
        for command in commands:
            command.signal_session(signal.SIGUSR1)
        time.sleep(1)
    for command in commands:
        command.close()
    with Store(application.path) as store:
        assert_sound(store)
