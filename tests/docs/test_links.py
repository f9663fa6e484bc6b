"""Links between the pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import _pages

pytestmark = pytest.mark.once

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_ELSEWHERE = re.compile(r"^[a-z]+:")


def _links(page: Path) -> list[str]:
    return [link["target"] for link in _LINK.finditer(_pages.prose(page))]


@pytest.mark.parametrize("page", _pages.pages(), ids=_pages.name_of)
def test_internal_links_resolve(page: Path) -> None:
    for link in _links(page):
        if _ELSEWHERE.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{_pages.name_of(page)} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            assert anchor in _pages.anchors(target), f"{_pages.name_of(page)}: no heading {link}"
        if page != _pages.README:
            assert _pages.DOCS in (target, *target.parents), (
                f"{link} leads out of the documentation"
            )


def test_every_page_can_be_reached() -> None:
    reached: set[Path] = set()
    ahead = [_pages.README]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in _links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                ahead.append(target)
    assert set(_pages.pages()) <= reached


def test_every_page_is_in_the_navigation() -> None:
    """Mkdocs only notes it when one is missing."""
    listed = set(re.findall(r"[\w/-]+\.md", (_pages.ROOT / "mkdocs.yml").read_text()))
    there = {page.relative_to(_pages.DOCS).as_posix() for page in _pages.pages()[1:]}
    assert there == listed
