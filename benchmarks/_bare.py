"""A round trip reduced to its transactions: what no queue on LMDB with one kernel lock can undercut.

The same rows change as in the engine's round trip: the counters in each transaction, the job's row
from pending to running to done. There is no codec, no ownership, no waiting, no check.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb

from benchmarks._loops import PAYLOAD
from benchmarks._session import Measurement, Session

_TIB = 1 << 40
# writemap makes the file as large as its map.
_WRITEMAP_SIZE = 1 << 30
_COUNTERS, _RUNNING, _PENDING, _DONE = b"\0\1n", b"\0\1o", b"\0\1p", b"\0\1e"
_ROW = b"h" * 33 + PAYLOAD.encode()
_CLAIM = b"c" * 36
_counters = struct.Struct(">11Q")


@dataclass(frozen=True)
class Options:
    """What varies.

    ``keep`` the done rows; ``apart``: in a tree of their own; ``writemap``: write through the
    mapping; ``flushed``: flush as the engine's ``full`` does.
    """

    keep: bool = True
    apart: bool = False
    writemap: bool = False
    flushed: bool = False


class Bare:
    """One environment and its lock."""

    def __init__(self, environment: Any, lock: int, options: Options) -> None:
        self._begin = environment.begin
        self._promise = environment.sync if options.flushed else _nothing
        self._lock = lock
        self._keep = options.keep
        self._done = environment.open_db(b"done") if options.apart else None
        self._number = 0

    def round_trips(self, count: int) -> None:
        for _ in range(count):
            self._put()
            self._ack(self._get())

    def _put(self) -> None:
        self._number += 1
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        transaction = self._begin(write=True)
        _count(transaction)
        transaction.put(_PENDING + self._number.to_bytes(8, "big"), _ROW)
        transaction.commit()
        self._promise(True)
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _get(self) -> bytes:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        transaction = self._begin(write=True)
        cursor = transaction.cursor()
        cursor.set_range(_PENDING)
        key, row = cursor.item()
        cursor.delete()
        _count(transaction)
        number = bytes(key[len(_PENDING) :])
        transaction.put(_RUNNING + number, _CLAIM + row)
        transaction.commit()
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        return number

    def _ack(self, number: bytes) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        transaction = self._begin(write=True)
        row = transaction.pop(_RUNNING + number)
        _count(transaction)
        if self._keep:
            transaction.put(_DONE + number, row[len(_CLAIM) :], db=self._done)
        transaction.commit()
        fcntl.flock(self._lock, fcntl.LOCK_UN)


def _nothing(force: bool) -> None:
    """No flush."""


def _count(transaction: Any) -> None:
    row = transaction.get(_COUNTERS)
    counts = list(_counters.unpack(row)) if row else [0] * 11
    counts[0] += 1
    transaction.put(_COUNTERS, _counters.pack(*counts))


@contextmanager
def opened(directory: Path, options: Options) -> Iterator[Bare]:
    """A bare store in the directory."""
    writemap = options.writemap
    environment: Any = lmdb.open(
        str(directory),
        map_size=_WRITEMAP_SIZE if writemap else _TIB,
        lock=False,
        sync=options.flushed,
        metasync=False,
        readahead=False,
        meminit=False,
        writemap=writemap,
        map_async=writemap,
        max_dbs=1 if options.apart else 0,
    )
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)
    try:
        yield Bare(environment, lock, options)
    finally:
        environment.close()
        os.close(lock)


def fresh_round_trip(
    session: Session, options: Options, count: int, warm_up: int | None = None
) -> Measurement:
    """A measurement of the seconds of a bare round trip; ``warm_up`` defaults to a tenth."""

    def measure() -> float:
        with session.fresh() as directory, opened(directory, options) as bare:
            bare.round_trips(max(1, count // 10) if warm_up is None else warm_up)
            start = time.perf_counter()
            bare.round_trips(count)
            return (time.perf_counter() - start) / count

    return measure
