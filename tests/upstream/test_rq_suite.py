"""RQ's own tests pass on this project's connection, without a Redis server."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.upstream import _archive, _rq, _runs

pytestmark = pytest.mark.once

Start = Callable[[Callable[..., None], _runs.Way], Iterator[_runs.Suite]]
"""Runs the files that a test wants, in some way."""

VERSION = importlib.metadata.version("rq")
TESTS = _rq.TESTS.get(VERSION, {})
SLOW = [
    file for file in ("test_worker.py", "test_spawn_worker.py", "test_retry.py") if file in TESTS
]


@pytest.fixture(scope="module")
def archive(request: pytest.FixtureRequest) -> Path:
    return _archive.fetch("rq", VERSION, request.config.cache.mkdir("rq"))


@pytest.fixture(scope="module")
def tests(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _archive.unpack_tests(archive, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture(scope="module")
def start(
    tests: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Start:
    def running(test: Callable[..., None], way: _runs.Way) -> Iterator[_runs.Suite]:
        files = _runs.wanted(request, test.__name__)
        suite = _runs.Suite(tests, tmp_path_factory.mktemp("upstream"), files, way)
        try:
            yield suite
        finally:
            suite.stop()

    return running


@pytest.fixture(scope="module")
def suite(start: Start) -> Iterator[_runs.Suite]:
    yield from start(test_file, _rq.way(VERSION))


@pytest.fixture(scope="module")
def workers(start: Start) -> Iterator[_runs.Suite]:
    yield from start(test_file_with_our_workers, _rq.way(VERSION, workers=True))


@pytest.fixture(scope="module")
def slow(start: Start) -> Iterator[_runs.Suite]:
    yield from start(test_file_with_its_slow_tests, _rq.way(VERSION, slow=True))


@pytest.fixture(scope="module")
def control(start: Start) -> Iterator[_runs.Suite]:
    yield from start(test_fixtures_on_a_real_server, _rq.way(VERSION, control=True))


def test_each_file_of_the_archive_is_run(tests: Path) -> None:
    assert {path.name for path in tests.rglob("test_*.py")} == set(TESTS)


@pytest.mark.contract("RQC-01")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", TESTS)
def test_file(suite: _runs.Suite, file: str, request: pytest.FixtureRequest) -> None:
    report = suite.report(file)
    _runs.tell(request, f"RQ {VERSION}", report)
    assert report.failed == [], report.output
    assert report.passed + report.left_out == TESTS[file]


@pytest.mark.contract("RQW-02")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", TESTS)
def test_file_with_our_workers(workers: _runs.Suite, file: str) -> None:
    report = workers.report(file)
    assert report.failed == [], report.output
    assert report.passed + report.left_out == TESTS[file]


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", SLOW)
def test_file_with_its_slow_tests(slow: _runs.Suite, file: str) -> None:
    report = slow.report(file)
    assert report.failed == [], report.output
    assert report.passed + report.left_out == TESTS[file]


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", TESTS)
def test_fixtures_on_a_real_server(control: _runs.Suite, file: str) -> None:
    """A test of the fixtures: where a real server fails, they are at fault."""
    report = control.report(file)
    assert report.failed == [], report.output
    assert report.passed + report.left_out == TESTS[file]
