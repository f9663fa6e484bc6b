"""The file grows with the jobs that live, not with those that were."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue

from . import _space
from ._ledger import assert_sound
from ._procs import Child, wait_state

LIVE = 1000
SIZES = [10, 100, 300, 900, 3000]
PAIRS = [100_000, pytest.param(1_000_000, marks=pytest.mark.torture)]


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("paused", [False, True])
def test_the_file_levels_off(
    path: Path, spawn: Callable[..., Child], pairs: int, paused: bool
) -> None:
    payloads = itertools.cycle(["x" * size for size in SIZES])
    with Queue(path, sync="off", vacuum_interval=0.001) as queue:
        for _ in range(LIVE):
            queue.put(next(payloads))
        reader = spawn(_space.list_and_stop, path)
        assert reader.line() == "stopping"
        wait_state(reader.pid, "T")
        if not paused:
            reader.signal(signal.SIGCONT)
            assert reader.line() == "listed"

        def work(count: int) -> int:
            for _ in range(count):
                queue.get_nowait().ack()
                queue.put(next(payloads))
            return (path / "data.mdb").stat().st_size

        early = work(pairs // 10)
        late = work(pairs - pairs // 10)
        live_bytes = LIVE * (sum(SIZES) // len(SIZES) + 100)
        assert late < 1.3 * early
        assert late < 4 * live_bytes
        assert queue.stats()["pending"] == LIVE
        assert queue.stats()["total"] == LIVE + pairs
        if paused:
            reader.signal(signal.SIGCONT)
            assert reader.line() == "listed"
        assert_sound(queue.store)
