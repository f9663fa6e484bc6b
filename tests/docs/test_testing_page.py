"""The page on testing counts right, and names tests that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.docs import _pages, test_contract

pytestmark = pytest.mark.once

PAGE = _pages.DOCS / "explanation" / "testing.md"
TEXT = PAGE.read_text(encoding="utf-8")


def is_about(figure: str, there: int) -> bool:
    """Whether a figure is not off by more than a quarter; otherwise bring it up to date."""
    return 0.75 * there <= int(figure.replace(",", "")) <= 1.25 * there


def collected() -> Counter[str]:
    """How many tests each directory has, the long ones included."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-m",
            "",
            "-p",
            "no:cacheprovider",
        ],
        cwd=_pages.ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=True,
    )
    return Counter(re.findall(r"^(tests/\w+)/\S*::", done.stdout, flags=re.MULTILINE))


def test_the_counts_are_about_right() -> None:
    shown = dict(re.findall(r"^\| `(tests/\w+)` \| ([\d,]+) \|", TEXT, flags=re.MULTILINE))
    there = collected()
    assert set(shown) == set(there)
    far_off = {name for name, figure in shown.items() if not is_about(figure, there[name])}
    assert far_off == set()


def test_the_number_of_promises_is_right() -> None:
    (figure,) = re.findall(r"has about (\d+) promises", TEXT)
    assert is_about(figure, len(test_contract.promises()))


def test_the_files_that_are_named_are_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", TEXT))
    assert [name for name in named if not (_pages.ROOT / name).exists()] == []
    assert len(named) > 10
