"""Copies of the examples, and their READMEs' commands: run as they stand but for the port."""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.contract.helpers import WATCHDOG
from tests.docs import _pages

EXAMPLES = _pages.ROOT / "examples"
NAMES = ("plain-script", "flask-rq", "django-dramatiq", "fastapi-async")
PORT = "8000"
"""The port in all READMEs."""

_MADE = ("data", "photos", "thumbnails", "db.sqlite3", ".venv", "__pycache__")
_PRINTS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


class Example:
    """An example in a directory of its own, where nobody has run it yet."""

    def __init__(self, name: str, parent: Path) -> None:
        self.name = name
        self.directory = parent / name
        shutil.copytree(
            EXAMPLES / name, self.directory, ignore=shutil.ignore_patterns(*_MADE, ".*cache")
        )
        # What the README's pip would have made: this Python and its packages.
        activate = self.directory / ".venv" / "bin" / "activate"
        activate.parent.mkdir(parents=True)
        activate.write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def block(self, title: str) -> _pages.Block:
        """The README's block of that title."""
        (found,) = (block for block in readme_blocks(self.name) if block.title == title)
        return found

    @contextlib.contextmanager
    def running(self, title: str, before: str = "true") -> Iterator[Terminal]:
        """The commands of a block, in a terminal for the length of a Python block.

        Another command can be run `before` them.

        Whatever is left of them at its end is killed. What they printed is shown if the block fails.
        """
        terminal = Terminal(self, title, before)
        try:
            yield terminal
        except BaseException:
            print(f"--- {title} of {self.name}\n{terminal.printed()}")
            raise
        finally:
            terminal.kill()

    def run(self, title: str) -> tuple[int, str]:
        """The commands of a block, which end by themselves: exit status, and what they printed."""
        with self.running(title) as terminal:
            status = terminal.wait()
            return status, terminal.printed()

    def check(self, title: str, status: int = 0) -> None:
        """They end so, and print what the README says."""
        ended, printed = self.run(title)
        expected = (self.block(title).expected or "").replace(PORT, str(self.port))
        assert ended == status, printed
        checker = doctest.OutputChecker()
        if not checker.check_output(expected, printed, _PRINTS):
            example = doctest.Example("", expected)
            raise AssertionError(checker.output_difference(example, printed, _PRINTS))


class Terminal:
    """A shell that runs a block, and all processes that come of it."""

    def __init__(self, example: Example, title: str, before: str) -> None:
        self._log = example.directory.parent / f"{title}-{time.monotonic_ns()}.log"
        *lines, last = example.block(title).text.replace(PORT, str(example.port)).splitlines()
        # The last command takes the shell's place, so that its exit status and signals are its own.
        script = "\n".join(["set -e", before, *lines, f"exec {last}"])
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=example.directory,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def printed(self) -> str:
        return self._log.read_text(errors="replace")

    def pids(self) -> list[int]:
        """The processes of this terminal that have not ended."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._has(pid)]

    def _has(self, pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:  # it has ended meanwhile
            return False
        state, _, _, session = stat.rpartition(")")[2].split()[:4]
        return int(session) == self._process.pid and state != "Z"

    def wait_for(self, pattern: str) -> None:
        """Wait until it has printed that."""

        def has_printed() -> bool:
            ended = self.has_ended()
            found = re.search(pattern, self.printed()) is not None
            assert found or not ended, f"it has ended, and has not printed {pattern!r}"
            return found

        wait_until(has_printed, f"it prints {pattern!r}")

    def wait(self) -> int:
        """Wait until the command and all its children have ended; the exit status."""
        status = self._process.wait(WATCHDOG)
        wait_until(lambda: not self.pids(), "the command's children have ended")
        return status

    def ctrl_c(self) -> int:
        """What the key does: SIGINT for all of them; then see above."""
        assert self._process.poll() is None, "it has ended before"
        os.killpg(self._process.pid, signal.SIGINT)
        return self.wait()

    def terminate(self) -> int:
        """What a service manager does: SIGTERM for the main process; then see above."""
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """SIGKILL for all of them, until none is left."""
        while pids := self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def has_ended(self) -> bool:
        return self._process.poll() is not None


def readme_blocks(name: str) -> list[_pages.Block]:
    """The fenced blocks of an example's README."""
    return _pages.blocks(EXAMPLES / name / "README.md")


def environment() -> dict[str, str]:
    """Of an example's process: a warning is an error, as in the tests themselves."""
    names = ("RQ_", "DJANGO_", "FLASK_", "DRAMATIQ_", "PYTEST", "VIRTUAL_ENV")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(names) and not name.lower().endswith("_proxy")
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    warnings = "error,ignore:This process:DeprecationWarning"  # as in pyproject.toml
    return {**kept, "PATH": path, "PYTHONPATH": str(_pages.ROOT), "PYTHONWARNINGS": warnings}


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Ask until the answer is yes. For conditions that no event announces."""
    deadline = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting until {what}"
        time.sleep(0.02)
