"""Worker processes of the real ``dramatiq`` command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._board import Board
from benchmarks._served import Address

VARIABLE = "BENCHMARKS_DRAMATIQ"
THREADS = 8
_ROOT = Path(__file__).resolve().parents[2]


class Workers:
    """The running command and the board that its processes write on."""

    def __init__(self, process: subprocess.Popen[bytes], board: Board, log: Path) -> None:
        self._process = process
        self._log = log
        self._board = board

    def wait_at_gate(self, threads: int) -> None:
        self._board.wait_at_gate(threads, self._check)

    def open_gate(self) -> None:
        self._board.open_gate()

    def wait_done(self, count: int) -> None:
        self._board.wait_done(count, self._check)

    def seconds(self) -> float:
        return self._board.seconds()

    def values(self) -> list[int]:
        return self._board.values()

    def _check(self) -> None:
        if self._process.poll() is not None:
            text = self._log.read_text(errors="replace") if self._log.exists() else ""
            raise RuntimeError("the dramatiq command ended:\n" + text[-3000:])


@contextmanager
def working(
    name: str, address: Address, directory: Path, *, processes: int = 1, results: bool = False
) -> Iterator[Workers]:
    """``dramatiq --processes N --threads 8`` on the named broker, ended on leaving."""
    board = Board(directory / "board")
    settings = {
        "name": name,
        "address": address,
        "board": str(board.directory),
        "results": results,
    }
    log = directory / "workers.log"
    command = [sys.executable, "-m", "dramatiq", "benchmarks.brokers.app"]
    options = ["--processes", str(processes), "--threads", str(THREADS), "--log-file", str(log)]
    process = subprocess.Popen(
        [*command, *options],
        cwd=_ROOT,
        env=os.environ | {VARIABLE: json.dumps(settings)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield Workers(process, board, log)
    finally:
        # All is measured, and the place is thrown away: nobody waits for an orderly end.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
