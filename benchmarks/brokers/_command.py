"""Worker processes of the real ``dramatiq`` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._board import Board, Workers
from benchmarks._served import Address

VARIABLE = "BENCHMARKS_DRAMATIQ"
THREADS = 8
_ROOT = Path(__file__).resolve().parents[2]


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
    workers = Workers("the dramatiq command", board, log)
    process = subprocess.Popen(
        [*command, *options],
        cwd=_ROOT,
        env=os.environ | {VARIABLE: json.dumps(settings)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    workers.processes.append(process)
    try:
        yield workers
    finally:
        workers.kill()
