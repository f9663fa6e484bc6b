"""The floor: one bare LMDB transaction for each job, with the same lock and the same flushes."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender

_TIB = 1 << 40


class RawLmdb(Contender):
    """One flock, one transaction, one put, and ``env.sync(True)`` after the commit.

    No counters, no header, no order beyond the key: what no queue on LMDB can go below.
    """

    modules = ("lmdb",)
    distributions = ("lmdb",)

    def open(self, directory: Path) -> None:
        self._environment: Any = self.load().open(
            str(directory),
            map_size=_TIB,
            lock=False,
            metasync=False,
            readahead=False,
            meminit=False,
        )
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)
        self._number = 0
        self.put = self._put

    def _put(self, payload: str) -> None:
        self._number += 1
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            transaction = self._environment.begin(write=True)
            transaction.put(self._number.to_bytes(8, "big"), payload.encode())
            transaction.commit()
            self._environment.sync(True)
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        self._environment.close()
        os.close(self._lock)
