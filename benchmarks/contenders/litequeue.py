"""litequeue: one SQLite table in WAL mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender


class LiteQueue(Contender):
    """``LiteQueue`` with ``synchronous=FULL`` in place of the NORMAL that it sets itself."""

    modules = ("litequeue",)
    distributions = ("litequeue",)

    def open(self, directory: Path) -> None:
        queue = self.load().LiteQueue(directory / "queue.db")
        queue.conn.execute("PRAGMA synchronous=FULL")
        self._queue = queue
        self.put = queue.put
        self.get = queue.pop
        self.ack = self._done

    def _done(self, item: Any) -> None:
        self._queue.done(item.message_id)

    def text(self, item: Any) -> str:
        return str(item.data)

    def close(self) -> None:
        self._queue.close()
