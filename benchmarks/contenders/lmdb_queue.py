"""lmdb-queue: LMDB with writemap and map_async, polling consumers, DONE jobs kept 300 s."""

from __future__ import annotations

from operator import methodcaller
from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender


class LmdbQueue(Contender):
    """lmdb-queue at its defaults. It has no batches; its ``sync=True`` flushes nothing on Linux."""

    modules = ("equeue",)
    distributions = ("lmdb-queue",)

    def open(self, directory: Path) -> None:
        self._module = self.load()
        queue = self._module.Queue(directory / "store")
        self._queue = queue
        self.put = queue.put
        self.get = queue.get
        self.ack = methodcaller("ack")

    def wait(self, seconds: float) -> Any | None:
        try:
            return self._queue.get(timeout=seconds)
        except self._module.QueueEmpty:
            return None

    def close(self) -> None:
        self._queue.close()
