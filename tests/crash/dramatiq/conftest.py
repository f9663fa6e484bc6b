"""Fixtures of the tests with Dramatiq's command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .._ledger import assert_sound
from .._watch import Gate
from ._application import Application
from ._commands import Command, Starter, Watch

if not sys.platform.startswith("linux"):
    collect_ignore_glob = ["test_*.py"]  # /proc, unshare, mount


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    """The application in the test's own process, to send and to look."""
    application = Application(tmp_path, sync="off")
    yield application
    application.close()


@pytest.fixture
def watch(application: Application) -> Watch:
    """What the worker processes wrote down."""
    return Watch(application.directory / "journal")


@pytest.fixture
def gate(application: Application) -> Iterator[Gate]:
    """The gate of the queue "default"."""
    gate = Gate(application.directory)
    yield gate
    gate.close()


@pytest.fixture
def other_gate(application: Application) -> Iterator[Gate]:
    """The gate of the queue "other"."""
    gate = Gate(application.directory, "other")
    yield gate
    gate.close()


@pytest.fixture
def start(
    application: Application, watch: Watch, gate: Gate, other_gate: Gate
) -> Iterator[Starter]:
    """Starts commands with so many processes and threads; what is left of them is killed."""
    commands: list[Command] = []

    def begin(processes: int = 1, threads: int = 1, *arguments: str, **options: Any) -> Command:
        commands.append(
            Command(watch, application.directory, processes, threads, *arguments, **options)
        )
        return commands[-1]

    yield begin
    for command in commands:
        command.close()
    assert_sound(application.broker.store)
