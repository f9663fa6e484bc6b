"""Tests of other projects that are not run: the groups of the data files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.upstream import _archive

_FILES = Path(__file__).with_name("left_out")


@dataclass(frozen=True)
class LeftOut:
    """A group of tests that are not run.

    Attributes:
        reason: why.
        tests: their node ids, or names of whole files.
        versions: the versions of the project that have them, if the newest has not, or if others have not.
    """

    reason: str
    tests: list[str]
    versions: list[str] = field(default_factory=list)


def groups(project: str) -> list[LeftOut]:
    """All tests of a project that are not run, as its data file has them."""
    text = (_FILES / f"{project}.json").read_text(encoding="utf-8")
    return [LeftOut(**group) for group in json.loads(text)]


def of_version(project: str, version: str) -> dict[str, bool]:
    """The tests that are left out of a version, and whether it must have them.

    An older version may lack what was left out with the newest in mind.
    """
    return {
        test: version in (group.versions or [_archive.newest(project)])
        for group in groups(project)
        if version in (group.versions or [version])
        for test in group.tests
    }
