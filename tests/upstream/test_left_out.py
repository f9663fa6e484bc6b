"""The tests that are left out are those that docs/decisions tells of."""

from __future__ import annotations

import re

import pytest

from tests.docs import _pages
from tests.upstream import _suite

PAGE = _pages.DOCS / "decisions" / "dramatiq-upstream-tests.md"
_GROUP = re.compile(r"^- (?P<reason>.+(?:\n  \S.*)*)\n(?P<tests>(?:    - `.+`\n)+)", re.MULTILINE)


def _listed() -> list[tuple[str, list[str]]]:
    text = PAGE.read_text(encoding="utf-8").partition("## Consequences")[2]
    return [
        (" ".join(group["reason"].split()), re.findall(r"`(.+)`", group["tests"]))
        for group in _GROUP.finditer(text)
    ]


def test_the_page_lists_what_the_data_file_leaves_out_with_the_same_reasons() -> None:
    def reason(group: _suite.LeftOut) -> str:
        versions = f"Dramatiq {', '.join(group.versions)} only: " if group.versions else ""
        return versions + group.reason

    assert _listed() == [(reason(group), group.tests) for group in _suite.left_out()]


@pytest.mark.parametrize("group", _suite.left_out(), ids=lambda group: group.tests[0])
def test_each_group_has_a_reason_and_tests_of_files_that_are_run_or_whole_files(
    group: _suite.LeftOut,
) -> None:
    assert group.reason.endswith(".")
    for test in group.tests:
        file, separator, _ = test.partition("::")
        assert (file in _suite.FILES) == bool(separator)


def test_no_test_is_left_out_twice() -> None:
    tests = [test for group in _suite.left_out() for test in group.tests]
    assert len(tests) == len(set(tests))
