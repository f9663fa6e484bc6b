"""The code in the README and in the documentation runs, and prints what the page says it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import _pages

pytestmark = pytest.mark.once

RUNNER = Path(__file__).with_name("_run_page.py")
WATCHDOG = 120


def _with_python() -> list[Path]:
    return [
        page
        for page in _pages.pages()
        if any(block.language == "python" and not block.skip for block in _pages.blocks(page))
    ]


@pytest.mark.parametrize("page", _with_python(), ids=_pages.name_of)
def test_the_pages_python_runs(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(RUNNER), str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_pages.ROOT)},
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert not done.stderr


@pytest.mark.parametrize("page", _pages.pages(), ids=_pages.name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in _pages.blocks(page):
        assert block.language, f"{_pages.name_of(page)}:{block.line} names no language"


def test_shell_blocks_are_run_or_say_why_not() -> None:
    """Only the tutorial's and those of some pages are run (test_tutorial, test_command_line)."""
    run = [_pages.DOCS / name for name in ["tutorial.md", *_pages.TYPED]]
    for page in _pages.pages():
        for block in _pages.blocks(page):
            if block.language == "sh" and page not in run:
                assert block.skip, f"{_pages.name_of(page)}:{block.line} gives no reason"


def test_a_difference_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_pages.ROOT)},
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        check=False,
    )
    assert done.returncode == 1
    assert "line 4, prints something else" in done.stderr
