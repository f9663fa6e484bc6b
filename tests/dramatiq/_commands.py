"""Commands of Dramatiq and its ecosystem, run as a user runs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.contract.helpers import WATCHDOG

ROOT = Path(__file__).parents[2]
PROJECTS = Path(__file__).parent / "projects"
SHARED = ROOT / "tests" / "projects"
"""The modules that all projects share."""


def installed(program: str, *arguments: str) -> list[str]:
    """A command line, with the program from this Python's own environment."""
    return [str(Path(sys.executable).with_name(program)), *arguments]


def environment(directory: Path, **extra: str) -> dict[str, str]:
    """Of a process that uses the store in `directory` and finds the projects' modules."""
    places = [str(PROJECTS), str(SHARED), str(ROOT), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, places))
    return {**os.environ, "PYTHONPATH": path, "EQUEUE_TEST_DIRECTORY": str(directory), **extra}


@contextlib.contextmanager
def running(directory: Path, *command: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of this Python's packages, for the length of a block; then it gets SIGTERM.

    What it prints is shown if the block fails.
    """
    output = directory / f"{command[0]}.output"
    with output.open("wb") as log:
        process = subprocess.Popen(
            installed(*command),
            cwd=directory,
            env=environment(directory, **extra),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
        if process.poll() is None:
            process.terminate()
        process.wait(WATCHDOG)
    except BaseException:
        print(f"--- {' '.join(command)}\n{output.read_text(errors='replace')}")
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_lines(directory: Path, count: int) -> list[str]:
    """Wait until the projects' actors have written so many lines; the lines."""
    wait_until(lambda: len(lines(directory)) >= count, f"{count} lines are written")
    return lines(directory)


def lines(directory: Path) -> list[str]:
    file = directory / "lines"
    return file.read_text().splitlines() if file.exists() else []


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting until {what}"
        time.sleep(0.01)
