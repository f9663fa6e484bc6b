"""gevent: who waits gives way to the other greenlets, who holds the store's lock does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WATCHDOG = 120
PAUSE = 0.9
"""Seconds that a busy machine may keep a greenlet waiting; a wait that gives no way takes one at least."""


def run(program: str, *arguments: object) -> list[str]:
    """The lines that a program of `_greenlets` says."""
    command = [sys.executable, "-m", "tests.dramatiq._greenlets", program, *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        timeout=WATCHDOG,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.contract("DRW-07")
def test_waiting_leaves_the_thread_to_the_other_greenlets(store_path: Path) -> None:
    assert float(run("waits", store_path)[0]) < PAUSE


@pytest.mark.contract("DRW-07")
@pytest.mark.parametrize("sync", ["off", "normal"])
def test_no_other_greenlet_runs_inside_a_transaction(store_path: Path, sync: str) -> None:
    outside, inside = map(int, run("transactions", store_path, sync)[0].split())
    assert outside > 300
    assert inside == 0


@pytest.mark.contract("DRW-07")
def test_a_worker_with_results_delays_and_time_limits(store_path: Path) -> None:
    added, delayed, limited, pause = run("worker", store_path)
    assert int(added) == sum(range(1, 101))
    assert 0.29 < float(delayed) < 5
    assert limited == "TimeLimitExceeded"
    assert float(pause) < PAUSE, "idle consumers held everybody up"
