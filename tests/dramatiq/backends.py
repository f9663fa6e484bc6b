"""The brokers, results backends and rate limiter backends that the contracts are bound to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from dramatiq import Broker
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.rate_limits import RateLimiterBackend
from dramatiq.rate_limits.backends import RedisBackend as RedisLimits
from dramatiq.rate_limits.backends import StubBackend as StubLimits
from dramatiq.results import ResultBackend
from dramatiq.results.backends import RedisBackend as RedisResults
from dramatiq.results.backends import StubBackend as StubResults

from equeue_dramatiq import LMDBBroker, LMDBRateLimiterBackend, LMDBResultBackend


class StubBrokers:
    def open(self) -> Broker:
        return StubBroker(fail_fast_default=False)

    def dead_letters(self, broker: Any, queue: str) -> int:
        return len(broker.dead_letters_by_queue[queue])

    def results(self) -> ResultBackend:
        return StubResults()

    def limits(self) -> RateLimiterBackend:
        return StubLimits()

    def close(self) -> None:
        pass


class RedisBrokers:
    """Also results and limits, all in a namespace of their own."""

    def __init__(self, port: int) -> None:
        self._client = redis.Redis("127.0.0.1", port)
        self._name = f"test-{uuid4().hex}"

    def open(self) -> Broker:
        return RedisBroker(client=self._client, namespace=self._name)

    def dead_letters(self, broker: Broker, queue: str) -> int:
        return int(self._client.zcard(f"{self._name}:{queue}.XQ"))

    def results(self) -> ResultBackend:
        return RedisResults(client=self._client, namespace=self._name)

    def limits(self) -> RateLimiterBackend:
        return RedisLimits(client=self._client)

    def close(self) -> None:
        self._client.flushall()
        self._client.close()


class _RabbitmqBroker(RabbitmqBroker):
    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Its join looks ten times in a second whether the queue is empty; this, three in a tenth."""
        super().join(queue_name, min_successes=3, idle_time=30, timeout=timeout)


class RabbitmqBrokers:
    def __init__(self, port: int) -> None:
        self._port = port
        self._brokers: list[Any] = []

    def open(self) -> Broker:
        broker = _RabbitmqBroker(
            host="127.0.0.1", port=self._port, confirm_delivery=True, max_priority=10
        )
        self._brokers.append(broker)
        return broker

    def dead_letters(self, broker: Any, queue: str) -> int:
        return int(broker.get_queue_message_counts(queue)[2])

    def results(self) -> ResultBackend:
        return StubResults()

    def limits(self) -> RateLimiterBackend:
        return StubLimits()

    def close(self) -> None:
        for broker in self._brokers:  # its queues are left: their names are used once, the node too
            broker.close()


class LMDBBrokers:
    """Also results and limits, all in one directory, at the default durability."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: list[Any] = []

    def open(self) -> Broker:
        return self._keep(LMDBBroker(self._path))

    def dead_letters(self, broker: Any, queue: str) -> int:
        return int(broker.stats(queue)["failed"])

    def results(self) -> ResultBackend:
        return self._keep(LMDBResultBackend(self._path))

    def limits(self) -> RateLimiterBackend:
        return self._keep(LMDBRateLimiterBackend(self._path))

    def _keep(self, opened: Any) -> Any:
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        for each in self._opened:
            each.close()
