"""The tests that are left out are those that docs/decisions tells of."""

from __future__ import annotations

import re

import pytest

from tests.docs import _pages
from tests.upstream import _dramatiq, _left_out, _rq

pytestmark = pytest.mark.once

PROJECTS = {
    "Dramatiq": set(_dramatiq.FILES),
    "RQ": {file for files in _rq.TESTS.values() for file in files},
}
GROUPS = [(project, group) for project in PROJECTS for group in _left_out.groups(project.lower())]
_GROUP = re.compile(r"^- (?P<reason>.+(?:\n  \S.*)*)\n(?P<tests>(?:    - `.+`\n)+)", re.MULTILINE)


def _listed(project: str) -> list[tuple[str, list[str]]]:
    page = _pages.DOCS / "decisions" / f"{project.lower()}-upstream-tests.md"
    text = page.read_text(encoding="utf-8").partition("## Consequences")[2]
    return [
        (" ".join(group["reason"].split()), re.findall(r"`(.+)`", group["tests"]))
        for group in _GROUP.finditer(text)
    ]


@pytest.mark.parametrize("project", PROJECTS)
def test_the_page_lists_what_the_data_file_leaves_out_with_the_same_reasons(project: str) -> None:
    def reason(group: _left_out.LeftOut) -> str:
        versions = f"{project} {', '.join(group.versions)} only: " if group.versions else ""
        return versions + group.reason

    groups = _left_out.groups(project.lower())
    assert _listed(project) == [(reason(group), group.tests) for group in groups]


@pytest.mark.parametrize(
    ("project", "group"), GROUPS, ids=[f"{project}-{group.tests[0]}" for project, group in GROUPS]
)
def test_each_group_has_a_reason_and_tests_of_files_that_are_run_or_whole_files(
    project: str, group: _left_out.LeftOut
) -> None:
    assert group.reason.endswith(".")
    for test in group.tests:
        file, separator, _ = test.partition("::")
        assert (file in PROJECTS[project]) == bool(separator)


@pytest.mark.parametrize("project", PROJECTS)
def test_no_test_is_left_out_twice(project: str) -> None:
    tests = [test for group in _left_out.groups(project.lower()) for test in group.tests]
    assert len(tests) == len(set(tests))
