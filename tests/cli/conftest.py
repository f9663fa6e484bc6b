"""The command, run in this process, and stores that real programs made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from equeue_core import Store
from equeue_core.cli._app import app

Run = Callable[..., Result]

KILLED = """
import os, signal, sys
from equeue_core import Queue
Queue(sys.argv[1], "mail").get(timeout=0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def equeue() -> Run:
    """Runs the command; it is to end with the code that is expected."""

    def run(*arguments: object, code: int = 0, stdin: str | None = None) -> Result:
        result = _runner().invoke(app, [str(each) for each in arguments], input=stdin)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


def _runner() -> CliRunner:
    try:
        return CliRunner(mix_stderr=False)  # type: ignore[call-arg]
    except TypeError:  # since click 8.2, nothing else is done
        return CliRunner()


@pytest.fixture
def shown(equeue: Run) -> Callable[..., Any]:
    """Runs the command with ``--json``; what it prints."""
    return lambda *arguments, code=0: json.loads(equeue(*arguments, "--json", code=code).stdout)


@pytest.fixture
def store(store_path: Path) -> Path:
    """A store with jobs of each state in its queue ``mail``: 1 failed, 2 done, 3 cancelled, 4 and 5 pending,
    6 scheduled.
    """
    with Store(store_path) as store:
        queue = store.queue("mail")
        for number in range(1, 6):
            queue.put({"to": f"{number}@example.org"})
        queue.get(timeout=0).fail(ValueError("no such mailbox"))
        queue.get(timeout=0).ack(result="sent")
        queue.cancel(3)
        queue.put("later", delay=1000, priority=2, unique="one", max_retries=7)
    return store_path
