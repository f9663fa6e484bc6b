"""equeue itself."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender


class Engine(Contender):
    """``equeue_core.Queue`` at its defaults but for ``sync`` and the named options."""

    modules = ("equeue_core",)
    distributions = ("equeue", "lmdb", "msgpack")

    def __init__(self, sync: str, **options: Any) -> None:
        self._sync = sync
        self._options = options

    def open(self, directory: Path) -> None:
        self._module = self.load()
        queue = self._module.Queue(directory / "store", sync=self._sync, **self._options)
        self._queue = queue
        self.put = queue.put
        self.get = queue.get
        self.ack = methodcaller("ack")

    def wait(self, seconds: float) -> Any | None:
        try:
            return self._queue.get(timeout=seconds)
        except self._module.QueueEmpty:
            return None

    def put_many(self, payloads: Sequence[str]) -> None:
        self._queue.put_many(payloads)

    def get_many(self, count: int) -> list[Any]:
        records: list[Any] = self._queue.get_many(count)
        return records

    def ack_many(self, items: Sequence[Any]) -> None:
        self._queue.ack_many(items)

    def close(self) -> None:
        self._queue.close()
