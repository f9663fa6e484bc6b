"""Put the store in the place of a Redis server, in each Python process of a run of RQ's tests.

They say `Redis()`, and so do the processes that they start: redis-py's plain connection, which would go to
a server on this machine, is exchanged for one to the store. Database numbers stay what they are. If
EQUEUE_UPSTREAM_WORKERS is set, RQ's workers are exchanged for those of `equeue_rq`, too.
"""

from __future__ import annotations

import os
from typing import Any

import redis
import redis.connection

from equeue_rq import LMDBConnection

_STORE = os.environ.get("EQUEUE_UPSTREAM_STORE")
_PORT = int(os.environ.get("EQUEUE_UPSTREAM_PORT", "0"))
_Plain: Any = redis.connection.Connection


class _StoreConnection(LMDBConnection):
    """Our own, and on other machines and ports there is no server."""

    def __init__(self, host: str = "localhost", port: int = 6379, **options: Any) -> None:
        super().__init__(path=_STORE, **options)
        self._asked_for = host, port

    def connect(self) -> None:
        if self._asked_for not in (("localhost", 6379), ("127.0.0.1", 6379)):
            raise redis.ConnectionError(f"no server at {self._asked_for}")
        super().connect()


class _ServerConnection(_Plain):
    """Redis-py's own, to a server on another port, which the fixtures are tested with."""

    def __init__(self, host: str = "localhost", port: int = 6379, **options: Any) -> None:
        super().__init__(host=host, port=_PORT if port == 6379 else port, **options)


def _install(connection: type) -> None:
    redis.Connection = redis.connection.Connection = connection
    for pool in (redis.connection.ConnectionPool, redis.connection.BlockingConnectionPool):
        init: Any = pool.__init__
        init.__defaults__ = tuple(
            connection if default is _Plain else default for default in init.__defaults__
        )


def _install_workers() -> None:
    import rq.worker

    import equeue_rq

    for name in ("Worker", "SimpleWorker", "SpawnWorker"):
        for module in (rq, rq.worker):
            if hasattr(module, name):
                setattr(module, name, getattr(equeue_rq, name))


_install(_StoreConnection if _STORE else _ServerConnection)
if os.environ.get("EQUEUE_UPSTREAM_WORKERS"):
    _install_workers()
