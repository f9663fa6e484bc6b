"""The page on testing counts right, and names tests that there are."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.docs import _pages, test_contract

pytestmark = pytest.mark.once

PAGE = _pages.DOCS / "explanation" / "testing.md"
TEXT = PAGE.read_text(encoding="utf-8")

FAR_BELOW = 0.75
"""A figure that is less than this share of what there is has to be brought up to date."""


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
        capture_output=True,
        text=True,
        check=True,
    )
    return Counter(re.findall(r"^(tests/\w+)/\S*::", done.stdout, flags=re.MULTILINE))


def test_the_counts_are_about_right() -> None:
    shown = dict(re.findall(r"^\| `(tests/\w+)` \| ([\d,]+) \|", TEXT, flags=re.MULTILINE))
    there = collected()
    assert set(shown) == set(there)
    for directory, figure in shown.items():
        least = int(figure.replace(",", ""))
        assert FAR_BELOW * there[directory] <= least <= there[directory], directory


def test_the_number_of_promises_is_right() -> None:
    assert f"has {len(test_contract.promises())} promises" in TEXT


def test_the_files_that_are_named_are_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", TEXT))
    assert [name for name in named if not (_pages.ROOT / name).exists()] == []
    assert len(named) > 10
