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
from typing import Any

import lmdb
import msgpack

from benchmarks._loops import PAYLOAD
from benchmarks._session import Session

_TIB = 1 << 40
_COUNTERS_KEY = b"\0\1n"
_ROW = b"h" * 24 + PAYLOAD.encode()
_counters = struct.Struct(">8Q")

Loop = Callable[[int], None]


def block_seconds(session: Session) -> dict[str, float]:
    """Median seconds of each building block, by name, measured in alternating rounds."""
    count = session.count(4_000, 50)
    with session.fresh() as directory, _workbench(directory) as loops:
        figures = session.alternate({name: _timed(loop, count) for name, loop in loops.items()})
    measured = {figure.contender: figure.median for figure in figures}
    base = measured["transaction"]
    for name in ("insert", "delete", "get", "seek"):
        measured[name] = max(0.0, measured[name] - base)
    # A round of this block packs one row and unpacks another.
    measured["row"] /= 2
    # The key that a delete removes had to be inserted first.
    measured["delete"] = max(0.0, measured["delete"] - measured["insert"])
    return measured


def _timed(loop: Loop, count: int) -> Callable[[], float]:
    def measure() -> float:
        loop(max(1, count // 10))
        start = time.perf_counter()
        loop(count)
        return (time.perf_counter() - start) / count

    return measure


@contextmanager
def _workbench(directory: Path) -> Iterator[dict[str, Loop]]:
    environment: Any = lmdb.open(
        str(directory), map_size=_TIB, lock=False, sync=False, readahead=False, meminit=False
    )
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)
    page_file = os.open(directory / "page", os.O_RDWR | os.O_CREAT)
    try:
        yield {
            "flock pair": lambda count: _flock(lock, count),
            "transaction": lambda count: _transactions(environment, count, _nothing),
            "insert": lambda count: _transactions(environment, count, _insert),
            "delete": lambda count: _transactions(environment, count, _insert_and_delete),
            "get": lambda count: _transactions(environment, count, _get),
            "seek": lambda count: _transactions(environment, count, _seek),
            "page write": lambda count: _page_writes(page_file, count),
            "codec": _codec,
            "row": _rows,
            "clock": _clock,
            "gate": _gate,
        }
    finally:
        environment.close()
        os.close(lock)
        os.close(page_file)


def _flock(descriptor: int, count: int) -> None:
    flock = fcntl.flock
    for _ in range(count):
        flock(descriptor, fcntl.LOCK_EX)
        flock(descriptor, fcntl.LOCK_UN)


def _transactions(environment: Any, count: int, extra: Callable[[Any, bytes], object]) -> None:
    """Transactions that rewrite the counters row and do something more."""
    first = time.monotonic_ns()
    value = _counters.pack(*range(8))
    for number in range(first, first + count):
        transaction = environment.begin(write=True)
        transaction.put(_COUNTERS_KEY, value)
        extra(transaction, number.to_bytes(8, "big"))
        transaction.commit()


def _nothing(transaction: Any, number: bytes) -> None:
    pass


def _insert(transaction: Any, number: bytes) -> None:
    transaction.put(b"\0\1r" + number, _ROW)


def _insert_and_delete(transaction: Any, number: bytes) -> None:
    transaction.put(b"\0\1r" + number, _ROW)
    transaction.delete(b"\0\1r" + number)


def _get(transaction: Any, number: bytes) -> None:
    transaction.get(_COUNTERS_KEY)


def _seek(transaction: Any, number: bytes) -> None:
    cursor = transaction.cursor()
    cursor.set_range(b"\0\1r")
    cursor.item()


def _page_writes(descriptor: int, count: int) -> None:
    page, write = b"\0" * 4096, os.pwrite
    for number in range(count):
        write(descriptor, page, number % 16 * 4096)


def _codec(count: int) -> None:
    pack, unpack = msgpack.packb, msgpack.unpackb
    for _ in range(count):
        unpack(pack(PAYLOAD))


def _rows(count: int) -> None:
    pack, unpack = _counters.pack, _counters.unpack
    row = pack(*range(8))
    for _ in range(count):
        row = pack(*unpack(row))


def _clock(count: int) -> None:
    now = time.time
    for _ in range(count):
        now()


def _gate(count: int) -> None:
    lock = threading.Lock()
    for _ in range(count):
        lock.acquire()
        lock.release()
