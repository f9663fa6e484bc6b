"""huey: the storage below SqliteHuey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender


class HueyStorage(Contender):
    """``SqliteStorage(fsync=True)``.

    It deletes a job when it hands it out: there is no ack, and a crash of the worker loses the
    job. Its round trip is therefore two commits where the others make three.
    """

    modules = ("huey.storage",)
    distributions = ("huey",)

    def open(self, directory: Path) -> None:
        storage = self.load().SqliteStorage("bench", filename=str(directory / "h.db"), fsync=True)
        self._storage = storage
        self.put = self._enqueue
        self.get = storage.dequeue
        self.ack = _nothing

    def _enqueue(self, payload: str) -> None:
        self._storage.enqueue(payload.encode())

    def text(self, item: Any) -> str:
        return bytes(item).decode()

    def close(self) -> None:
        self._storage.close()


def _nothing(item: Any) -> None:
    """No ack."""
