"""The functions of the jobs, and what is called along with them."""

from __future__ import annotations

import fcntl
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rq import get_current_job
from rq.job import Job

from .._ledger import Journal

# Environment variables of the command.
DIRECTORY = "EQUEUE_TEST_DIRECTORY"
COMMAND = "EQUEUE_TEST_COMMAND"  # its name


def note(kind: str, job: Job | None = None) -> None:
    """Write a line: kind, job, process, monotonic time, retries left, command."""
    job = job or get_current_job()
    assert job is not None
    words = kind, job.id, os.getpid(), time.monotonic(), job.retries_left or 0, os.environ[COMMAND]
    journal = Journal(Path(os.environ[DIRECTORY], "journal"))
    journal(*words)
    journal.close()


def noted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Write down when it starts, and when it has returned."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        note("start")
        result = function(*args, **kwargs)
        note("end")
        return result

    return call


def _wait_at(gate: str) -> None:
    with Path(os.environ[DIRECTORY], f"gate-{gate}").open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


@noted
def mark() -> None:
    """Leave a mark, and be done."""


@noted
def hold(gate: str = "default") -> None:
    """Take as long as the test keeps the gate shut."""
    _wait_at(gate)


@noted
def nap(seconds: float) -> None:
    """Take a known time."""
    time.sleep(seconds)


@noted
def trip() -> None:
    """Fail."""
    raise ValueError("tripped")


@noted
def daemonize() -> None:
    """Leave a child behind in a session of its own, as long as the gate "other" is shut."""
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            note("child")
            _wait_at("other")
        finally:
            os._exit(0)
    _wait_at("default")


@noted
def run_command() -> None:
    """Leave a command behind in a session of its own, as long as the gate "other" is shut."""
    call = f"from {__name__} import _wait_at; _wait_at('other')"
    with subprocess.Popen([sys.executable, "-c", call], start_new_session=True):
        note("child")
        _wait_at("default")


@noted
def poison() -> None:
    """End the process that runs it."""
    os.kill(os.getpid(), signal.SIGKILL)


def on_failure(job: Job, *rest: Any) -> None:
    """Be told that the job has failed."""
    note("callback", job)


def raise_on_failure(job: Job, *rest: Any) -> None:
    """Be told that the job has failed, and fail oneself."""
    note("callback", job)
    raise ValueError("a callback that fails")


def exit_on_failure(job: Job, *rest: Any) -> None:
    """Be told that the job has failed, and end the thread, or so it seems."""
    note("callback", job)
    raise SystemExit


def slow_on_failure(job: Job, *rest: Any) -> None:
    """Be told that the job has failed, and take a while over it."""
    note("callback", job)
    _wait_at("other")


def on_exception(job: Job, *rest: Any) -> bool:
    """Be told that a job has failed."""
    note("handler", job)
    return True


def raise_on_exception(job: Job, *rest: Any) -> bool:
    """Be told that a job has failed, and fail oneself."""
    note("handler", job)
    raise ValueError("a handler that fails")
