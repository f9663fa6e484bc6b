"""`LMDBRedis`: redis-py's client, on a store in a directory instead of a server."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

import redis
from redis import ConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from equeue_core.storage import Sync
from equeue_rq._address import Address, parse_url
from equeue_rq._connection import LMDBConnection

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LMDBConnection", "LMDBConnectionPool", "LMDBRedis", "connection_pool"]

DEFAULT_PATH = "./data"

_NETWORK = ("host", "port", "unix_socket_path", "ssl")
"""Starts of the names of options that say how to reach a server."""
_CLIENT = frozenset({"single_connection_client", "auto_close_connection_pool", "event_dispatcher"})
"""Options of the client that are none of its connections."""
_SERVERS = frozenset({"connection_class", "parser_class"})
"""Options of redis-py's pools that say how to speak with a server."""


class LMDBConnectionPool(ConnectionPool):
    """A pool of `LMDBConnection`, as redis-py has them: threads may share it, and forked children.

    It does not tell redis-py's telemetry which connections are in use: that takes as long as a command.

    Parameters:
        connection_class: a subclass of `LMDBConnection`, instead of that one.
        options: as for redis-py's pools; what is for the connections, `LMDBConnection` has.
    """

    def __init__(
        self, connection_class: type[LMDBConnection] = LMDBConnection, *args: Any, **options: Any
    ) -> None:
        super().__init__(connection_class, *args, **options)

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Self:
        """A pool of connections to the store at a URL.

        Parameters:
            url: as for `LMDBRedis.from_url`.
            kwargs: further options of redis-py's connections; what the URL says goes before. Which parser
                or connection class to use with a server is of no meaning here.

        Raises:
            TypeError: there is no such option.
            ValueError: this is no such URL.
        """
        given = {**kwargs, **parse_url(url)}
        return cls(**_arguments(**{name: given[name] for name in given if name not in _SERVERS}))

    def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        """An idle connection, or a new one, connected and with nothing left to be read.

        Raises:
            redis.exceptions.ConnectionError: there are too many, or the store cannot be used.
        """
        self._checkpid()
        with self._lock:
            idle = self._available_connections
            connection = idle.pop() if idle else self.make_connection()
            self._in_use_connections.add(connection)
        try:
            connection.connect()
            if self._has_left_overs(connection):
                connection.disconnect()
                connection.connect()
        except BaseException:
            self.release(connection)
            raise
        return connection

    def _has_left_overs(self, connection: Any) -> bool:
        try:
            return bool(connection.can_read()) and getattr(self, "cache", None) is None
        except (RedisConnectionError, RedisTimeoutError):
            return True

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        self._checkpid()
        with self._lock:
            in_use = self._in_use_connections
            if (
                connection in in_use
                and self.owns_connection(connection)
                and not connection.should_reconnect()
            ):
                in_use.remove(connection)
                self._available_connections.append(connection)
                return
        super().release(connection)

    def __repr__(self) -> str:
        arguments = self.connection_kwargs
        address, db = arguments.get("connection_pool"), arguments.get("db", 0)
        path = address.path if isinstance(address, Address) else arguments.get("path")
        return f"<{type(self).__module__}.{type(self).__name__}(path={path!r}, db={db})>"


def connection_pool(
    path: str | os.PathLike[str],
    *,
    db: int = 0,
    sync: Sync = None,
    allow_network_fs: bool = False,
    max_connections: int | None = None,
    **options: Any,
) -> LMDBConnectionPool:
    """A pool of connections to a store.

    Parameters:
        path: the store's directory; made with mode 0700 if missing.
        db: the number of the database, 0 to 15.
        sync: the durability, see `equeue_core.Store`. None: the store's own, ``"full"`` for a new store.
        allow_network_fs: open a store on a network file system all the same.
        max_connections: at more than so many connections at a time, redis-py raises ConnectionError.
            None: redis-py's own limit.
        options: further options of redis-py's connections; see `LMDBRedis`.

    Raises:
        TypeError: redis-py knows no such option, or it is about a server.
    """
    return LMDBConnectionPool(
        **_arguments(
            path,
            db=db,
            sync=sync,
            allow_network_fs=allow_network_fs,
            max_connections=max_connections,
            **options,
        )
    )


def _arguments(
    path: str | os.PathLike[str],
    *,
    db: int | None = None,
    sync: Sync = None,
    allow_network_fs: bool = False,
    max_connections: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What a pool is made from."""
    _check(options)
    shown = {"db": db or 0, "max_connections": max_connections, **options}
    return {
        "connection_class": LMDBConnection,
        "connection_pool": Address.of(path, sync, allow_network_fs, shown),
        **shown,
    }


def _check(options: dict[str, Any]) -> None:
    known = inspect.signature(redis.Redis.__init__).parameters
    for name in options:
        if name.startswith(_NETWORK):
            raise TypeError(
                f"{name}: a store has no server. Say where its directory is: LMDBRedis(path), or a URL "
                "like lmdb:///var/lib/app/data?db=0"
            )
        if name not in known or name in _CLIENT or name == "self":
            raise TypeError(f"LMDBRedis has no option {name!r}")


class LMDBRedis(redis.Redis):
    """A ``redis.Redis`` whose commands run in this process, on a store.

    Everything else is redis-py's: pipelines, locks, pub/sub, scripts, and the shapes of answers. Clients
    of all processes of the machine that name the same directory share what is in it. A client can be
    used by several threads, and goes on working in a forked child.

    Parameters:
        path: the store's directory; made with mode 0700 if missing. Relative to the current directory.
        db: the number of the database, 0 to 15.
        sync: the durability, see `equeue_core.Store`. None: the store's own, ``"full"`` for a new store.
        allow_network_fs: open a store on a network file system all the same.
        connection_pool: a pool of `LMDBConnection`, instead of all of that.
        single_connection_client: use one connection for all, as redis-py has it.
        options: options of ``redis.Redis`` that are not about a server: ``decode_responses``, ``encoding``,
            ``encoding_errors``, ``protocol``, ``client_name``, ``max_connections``,
            ``health_check_interval``, ``retry``, ``retry_on_error``, ... With ``socket_timeout`` (seconds;
            default: None), a blocking command that takes longer raises redis-py's TimeoutError.

    Raises:
        TypeError: there is no such option.
        ValueError: the path cannot be one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        db: int = 0,
        *,
        sync: Sync = None,
        allow_network_fs: bool = False,
        connection_pool: ConnectionPool | None = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> None:
        given = {name: options.pop(name) for name in _CLIENT & options.keys()}
        own = connection_pool is None
        if connection_pool is None:
            connection_pool = _make_pool(
                DEFAULT_PATH if path is None else path,
                db=db,
                sync=sync,
                allow_network_fs=allow_network_fs,
                **options,
            )
        elif path is not None:
            raise TypeError("give a path or a connection pool, not both")
        super().__init__(
            connection_pool=connection_pool,
            single_connection_client=single_connection_client,
            **given,
        )
        self.auto_close_connection_pool = own

    def close(self) -> None:
        """Close the connections, unless the pool was given: another client may use it."""
        super().close()
        if getattr(self, "auto_close_connection_pool", False):  # which redis-py 5.0.0 does not know
            self.connection_pool.disconnect()

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Self:
        """A client of the store at a URL.

        Parameters:
            url: ``lmdb:///var/lib/app/data`` for an absolute path, ``lmdb://./data`` for a relative one.
                Options follow as in ``?db=1&decode_responses=true&sync=normal``.
            kwargs: as for the class; what the URL says goes before.

        Raises:
            ValueError: this is no such URL.
        """
        return cls(**{**kwargs, **parse_url(url)})


_make_pool = connection_pool
