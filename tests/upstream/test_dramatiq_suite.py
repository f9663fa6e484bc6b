"""Dramatiq's own tests pass on this project's broker and backends."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.upstream import _archive, _dramatiq, _runs

pytestmark = pytest.mark.once

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
    return _archive.fetch("dramatiq", VERSION, request.config.cache.mkdir("dramatiq"))


@pytest.fixture(scope="module")
def suite(
    archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[_runs.Suite]:
    files = _runs.wanted(request, test_file.__name__)
    yield from _running(archive, tmp_path_factory.mktemp("upstream"), files, control=False)


@pytest.fixture(scope="module")
def control(
    archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[_runs.Suite]:
    files = _runs.wanted(request, test_fixtures_on_dramatiqs_own_broker.__name__)
    yield from _running(archive, tmp_path_factory.mktemp("control"), files, control=True)


def _running(
    archive: Path, directory: Path, files: list[str], *, control: bool
) -> Iterator[_runs.Suite]:
    tests = _dramatiq.unpack(archive, VERSION, directory / "unpacked")
    (directory / "runs").mkdir()
    suite = _runs.Suite(tests, directory / "runs", files, _dramatiq.way(control=control))
    try:
        yield suite
    finally:
        suite.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", _dramatiq.FILES)
def test_file(suite: _runs.Suite, file: str, request: pytest.FixtureRequest) -> None:
    report = suite.report(file)
    _runs.tell(request, f"Dramatiq {VERSION}", report)
    assert report.failed == [], report.output
    assert report.passed > 0


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", CONTROL)
def test_fixtures_on_dramatiqs_own_broker(control: _runs.Suite, file: str) -> None:
    """A test of the fixtures: where Dramatiq's own broker fails, they are at fault."""
    report = control.report(file)
    assert report.failed == [], report.output
    assert report.passed > 0
