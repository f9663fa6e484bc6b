"""The workers that pages show live through a job that fails, and end on a store that is unusable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from equeue_core import Queue, State
from tests.docs import _pages

pytestmark = pytest.mark.once

PAGE = _pages.DOCS / "how-to" / "web-apps.md"
STORE = "/tmp/equeue-example"
WATCHDOG = 60


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The directory that stands for the page's."""
    return tmp_path / "store"


@pytest.fixture
def mailer(store: Path, tmp_path: Path) -> Path:
    """The page's worker, on that directory."""
    (text,) = (block.text for block in _pages.blocks(PAGE) if block.title == "mailer.py")
    assert text.count(f'"{STORE}"') == 1
    file = tmp_path / "mailer.py"
    file.write_text(text.replace(STORE, str(store)), encoding="utf-8")
    return file


def _start(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(file)],
        env={**os.environ, "PYTHONPATH": str(_pages.ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_mailer_outlives_a_job_that_fails(
    mailer: Path, store: Path, number: signal.Signals
) -> None:
    with Queue[dict[str, str]](store, "mails") as queue:
        bad = queue.put({"from": "nobody"}, max_retries=0)
        good = queue.put({"to": "first"})
        with _start(mailer) as process:
            try:
                queue.result(good, timeout=WATCHDOG)
                process.send_signal(number)
                _, log = process.communicate(timeout=WATCHDOG)
            finally:
                process.kill()
        assert process.returncode == 0
        assert log.count("Traceback") == log.count("KeyError: 'to'") == 1
        assert f"job {bad}, delivery 1" in log
        assert queue.job(bad).state == State.FAILED


def test_the_mailer_ends_on_a_store_that_cannot_be_used(mailer: Path, store: Path) -> None:
    store.write_text("not a directory", encoding="utf-8")
    with _start(mailer) as process:
        try:
            _, log = process.communicate(timeout=WATCHDOG)
        finally:
            process.kill()
    assert process.returncode == 1
    assert log.count("equeue_core.errors.StoreAccessError: ") == 1
