"""docs/decisions: an index, and a page for each decision in it."""

from __future__ import annotations

import re

import pytest

from tests.docs import _pages

pytestmark = pytest.mark.once

INDEX = _pages.DOCS / "decisions" / "index.md"
_ROW = re.compile(r"^\| (?P<id>D\d\d) \| \[[^\]]+\]\((?P<page>[\w-]+\.md)\) \|", flags=re.MULTILINE)
PARTS = ["## Context", "## Decision", "## Consequences"]


def _rows() -> list[tuple[str, str]]:
    return [(row["id"], row["page"]) for row in _ROW.finditer(INDEX.read_text(encoding="utf-8"))]


def test_each_id_is_listed_once_and_in_order() -> None:
    ids = [number for number, _ in _rows()]
    assert ids == [f"D{number:02d}" for number in range(1, len(ids) + 1)]
    assert ids


def test_each_listed_decision_has_its_page() -> None:
    there = {page.name for page in INDEX.parent.glob("*.md")} - {INDEX.name}
    listed = [page for _, page in _rows()]
    assert sorted(listed) == sorted(there)


def test_each_page_has_its_id_and_its_parts() -> None:
    for number, name in _rows():
        text = (INDEX.parent / name).read_text(encoding="utf-8")
        assert text.startswith(f"# {number} "), name
        assert re.findall(r"^## .+$", text, flags=re.MULTILINE) == PARTS, name


def test_each_figure_says_where_it_comes_from() -> None:
    figure = re.compile(r"\d (?:µs|ms|ns|GB)\b|×\s?\d|\d %|\d{2,} of \d{2,}")  # noqa: RUF001
    for _, name in _rows():
        text = " ".join((INDEX.parent / name).read_text(encoding="utf-8").split())
        if figure.search(text):
            assert "measured on the design's machine" in text, name
