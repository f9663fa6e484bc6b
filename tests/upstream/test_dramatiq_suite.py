"""Dramatiq's own tests pass on this project's broker and backends."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.upstream import _archive, _suite

VERSION = importlib.metadata.version("dramatiq")

# The files that need nothing but Dramatiq's in-memory broker and backends.
CONTROL = [
    "test_actors.py",
    "test_barrier.py",
    "test_bucket_rate_limiter.py",
    "test_callbacks.py",
    "test_composition.py",
    "test_concurrent_rate_limiter.py",
    "test_encoders.py",
    "test_generic_actors.py",
    "test_messages.py",
    "test_stub_broker.py",
    "test_worker.py",
]


@pytest.fixture(scope="module")
def archive(request: pytest.FixtureRequest) -> Path:
    return _archive.fetch(VERSION, request.config.cache.mkdir("dramatiq"))


@pytest.fixture(scope="module")
def suite(
    archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[_suite.Suite]:
    wanted = _wanted(request, test_file.__name__)
    yield from _running_suite(archive, tmp_path_factory.mktemp("upstream"), wanted, control=False)


@pytest.fixture(scope="module")
def control(
    archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[_suite.Suite]:
    wanted = _wanted(request, test_fixtures_on_dramatiqs_own_broker.__name__)
    yield from _running_suite(archive, tmp_path_factory.mktemp("control"), wanted, control=True)


def _wanted(request: pytest.FixtureRequest, name: str) -> list[str]:
    """The files whose test by this name was selected."""
    return [
        item.callspec.params["file"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == name
    ]


def _running_suite(
    archive: Path, directory: Path, files: list[str], *, control: bool
) -> Iterator[_suite.Suite]:
    tests = _archive.unpack_tests(archive, directory / "unpacked")
    (directory / "runs").mkdir()
    suite = _suite.Suite(tests, VERSION, directory / "runs", files, control=control)
    try:
        yield suite
    finally:
        suite.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", _suite.FILES)
def test_file(suite: _suite.Suite, file: str, request: pytest.FixtureRequest) -> None:
    report = suite.report(file)
    # For the summary in conftest.py. `record_property` does not get along with --junitxml.
    request.node.user_properties += [
        ("passed", report.passed),
        ("left_out", report.left_out),
        ("second_try", report.second_try),
        ("first_try", report.output if report.second_try else ""),
    ]
    assert report.failed == [], report.output
    assert report.passed > 0


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", CONTROL)
def test_fixtures_on_dramatiqs_own_broker(control: _suite.Suite, file: str) -> None:
    """A test of the fixtures: where Dramatiq's own broker fails, they are at fault."""
    report = control.report(file)
    assert report.failed == [], report.output
    assert report.passed > 0


def test_every_file_is_run_or_left_out(archive: Path, tmp_path: Path) -> None:
    there = {path.name for path in _archive.unpack_tests(archive, tmp_path).glob("test_*.py")}
    whole = {test for group in _suite.left_out() for test in group.tests if "::" not in test}
    assert set(_suite.FILES) | (whole & there) == there
    assert not set(_suite.FILES) & whole
