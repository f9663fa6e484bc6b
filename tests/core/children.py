"""Other processes: scripts that share a store with the test."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contract.helpers import WATCHDOG

PRELUDE = """
import json, os, signal, sys, threading, time
from equeue_core import *
path = sys.argv[1]
def say(*words):
    print(*words, flush=True)
def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit("the test is gone")
    return line.strip()
"""


class Child:
    """A running script. Lines go both ways."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def hear(self) -> str:
        """The next line that the script says."""
        watchdog = threading.Timer(WATCHDOG, self.process.kill)
        watchdog.start()
        try:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, f"the script ended with {self.process.wait(WATCHDOG)} and said nothing"
        return line.strip()

    def say(self, text: str = "") -> None:
        """Give the script a line to hear."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        self.process.kill()
        self.process.wait(WATCHDOG)

    def wait(self) -> int:
        """The exit status."""
        return self.process.wait(WATCHDOG)


def _command(code: str, path: Path, arguments: tuple[object, ...]) -> list[str]:
    script = PRELUDE + textwrap.dedent(code)
    return [sys.executable, "-c", script, str(path), *map(str, arguments)]


@contextmanager
def child(code: str, path: Path, *arguments: object) -> Iterator[Child]:
    """Start a script; kill it at the end if it still runs."""
    process = subprocess.Popen(
        _command(code, path, arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Child(process)
    finally:
        process.kill()
        process.communicate()


def run(code: str, path: Path, *arguments: object, timeout: float = WATCHDOG) -> str:
    """Run a script to its end; what it said. It must end well."""
    done = subprocess.run(
        _command(code, path, arguments),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
