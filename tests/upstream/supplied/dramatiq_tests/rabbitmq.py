"""LMDBBroker with those ways of RabbitmqBroker that its tests use to look inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equeue_dramatiq import LMDBBroker

from .backends import STORES


class _Connection:
    """The open store, as RabbitmqBroker has a connection."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def is_open(self) -> bool:
        return self._broker._store is not None

    def close(self) -> None:
        self._broker.close()


class Broker(LMDBBroker):
    """LMDBBroker, to be looked at as RabbitmqBroker is."""

    def __init__(
        self,
        path: Path = STORES / "rabbitmq",
        *,
        credentials: object = None,
        **options: Any,
    ) -> None:
        super().__init__(path, **options)

    def _connection(self) -> _Connection:
        return _Connection(self)

    connection = property(_connection, fdel=LMDBBroker.close)
    channel = property(_connection, fdel=LMDBBroker.close)

    def join(
        self,
        queue_name: str,
        min_successes: int = 10,
        idle_time: int = 100,
        *,
        timeout: int | None = None,
    ) -> None:
        super().join(queue_name, timeout=timeout)
