"""What the building blocks of a round trip cost on their own."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgpack

from benchmarks._loops import PAYLOAD
from benchmarks._session import Session

_PAGE = b"\0" * 4096
_counters = struct.Struct(">11Q")

_Loop = Callable[[int], None]


def block_seconds(session: Session) -> dict[str, float]:
    """Median seconds of each building block, by name, measured in alternating rounds."""
    count = session.count(10_000, 50)
    with session.fresh() as directory, _workbench(directory) as loops:
        figures = session.alternate({name: _timed(loop, count) for name, loop in loops.items()})
    return {figure.contender: figure.median for figure in figures}


def _timed(loop: _Loop, count: int) -> Callable[[], float]:
    def measure() -> float:
        loop(max(1, count // 10))
        start = time.perf_counter()
        loop(count)
        return (time.perf_counter() - start) / count

    return measure


@contextmanager
def _workbench(directory: Path) -> Iterator[dict[str, _Loop]]:
    descriptor = os.open(directory / "file", os.O_RDWR | os.O_CREAT)
    try:
        yield {
            "lock": lambda count: _locks(descriptor, count),
            "page": lambda count: _page_writes(descriptor, count),
            "codec": _codec,
            "row": _rows,
            "clock": _clock,
            "gate": _gates,
        }
    finally:
        os.close(descriptor)


def _locks(descriptor: int, count: int) -> None:
    flock = fcntl.flock
    for _ in range(count):
        flock(descriptor, fcntl.LOCK_EX)
        flock(descriptor, fcntl.LOCK_UN)


def _page_writes(descriptor: int, count: int) -> None:
    write = os.pwrite
    for number in range(count):
        write(descriptor, _PAGE, number % 16 * len(_PAGE))


def _codec(count: int) -> None:
    pack, unpack = msgpack.packb, msgpack.unpackb
    for _ in range(count):
        unpack(pack(PAYLOAD))


def _rows(count: int) -> None:
    # Each turn packs one and unpacks one.
    pack, unpack = _counters.pack, _counters.unpack
    row = pack(*range(11))
    for _ in range(count // 2):
        row = pack(*unpack(row))


def _clock(count: int) -> None:
    now = time.time
    for _ in range(count):
        now()


def _gates(count: int) -> None:
    gate = threading.RLock()
    for _ in range(count):
        gate.acquire()
        gate.release()
