"""persist-queue: SQLite, pickled payloads."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender


class PersistQueue(Contender):
    """``SQLiteAckQueue`` in WAL mode with ``synchronous=FULL``: a flush for each commit."""

    modules = ("persistqueue",)
    distributions = ("persist-queue",)

    def open(self, directory: Path) -> None:
        queue = self.load().SQLiteAckQueue(str(directory))
        # FULL is SQLite's usual default, but a build may have another.
        queue._putter.execute("PRAGMA synchronous=FULL")
        self._queue = queue
        self.put = queue.put
        self.get = partial(queue.get, block=False, raw=True)
        self.ack = queue.ack

    def text(self, item: Any) -> str:
        return str(item["data"])

    def close(self) -> None:
        self._queue.close()
