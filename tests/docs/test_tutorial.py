"""The tutorial, typed step by step: its files, its commands in one shell, and what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import _pages

pytestmark = pytest.mark.once

PAGE = _pages.DOCS / "tutorial.md"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the reader works, with ``python`` on the path."""
    command = tmp_path / "bin" / "python"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    command.chmod(0o700)
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def shell(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A shell that reads its commands from a pipe."""
    path = os.pathsep.join([str(directory.parent / "bin"), os.environ["PATH"]])
    with (
        directory.with_name("errors").open("w") as errors,
        subprocess.Popen(
            ["bash"],
            cwd=directory,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(_pages.ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _matches(expected: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.timeout(120)
def test_the_tutorial(directory: Path, shell: subprocess.Popen[str]) -> None:
    assert shell.stdin is not None
    assert shell.stdout is not None
    for block in _pages.blocks(PAGE):
        if block.skip:
            continue
        if block.title:
            (directory / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            shell.stdin.write(block.text)
            if "kill -9" in block.text:
                # A reader takes longer to type the next command than a process takes to die.
                shell.stdin.write("wait $! 2>/dev/null\n")
            shell.stdin.flush()
            for expected in (block.expected or "").splitlines():
                printed = shell.stdout.readline().rstrip("\n")
                assert _matches(expected, printed), (
                    f"line {block.line}: {printed!r} instead of {expected!r}\n"
                    + directory.with_name("errors").read_text()
                )
    rest, _ = shell.communicate()
    assert not rest
    assert "Traceback" not in directory.with_name("errors").read_text()


def test_the_tutorial_kills_a_worker() -> None:
    commands = "".join(block.text for block in _pages.blocks(PAGE) if block.language == "sh")
    assert "kill -9" in commands
