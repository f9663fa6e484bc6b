"""Where a connection leads, in a form that survives the ways in which RQ hands connections to children."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from equeue_core.storage import Sync

SCHEME = "lmdb"

_SERVER = re.compile(r"@|:\d*$|^localhost$|^127\.")
"""What is in the place of the host where a server's URL got another scheme, and is no directory's name."""

_TRUE = ("1", "t", "true", "y", "yes", "on")
_FALSE = ("0", "f", "false", "n", "no", "off", "")


@dataclass(frozen=True)
class Address:
    """A store, and with what options connections to it are made.

    RQ's SpawnWorker writes a connection's keyword arguments into the source of its child, by `repr`, as
    those of a plain ``redis.Redis``. So the address stands there as ``connection_pool``, and its `repr` is
    an expression that makes such a pool.

    Attributes:
        path: the store's directory, absolute.
        sync, allow_network_fs: as for `equeue_core.Store`.
        options: the other keyword arguments of the pool, as far as they can be written down.
    """

    path: str
    sync: Sync = None
    allow_network_fs: bool = False
    options: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        sync: Sync,
        allow_network_fs: bool,
        options: dict[str, Any],
    ) -> Address:
        """The address of a path, which may be relative to the current directory."""
        plain = (str, bytes, int, float, bool, type(None))
        kept = tuple((name, value) for name, value in options.items() if type(value) in plain)
        return cls(os.path.abspath(os.fspath(path)), sync, allow_network_fs, kept)

    def __repr__(self) -> str:
        arguments = {
            "sync": self.sync,
            "allow_network_fs": self.allow_network_fs,
            **dict(self.options),
        }
        given = "".join(
            f", {name}={value!r}" for name, value in arguments.items() if value not in (None, False)
        )
        return (
            f"__import__('equeue_rq.client', fromlist=['*']).connection_pool({self.path!r}{given})"
        )


def parse_url(url: str) -> dict[str, Any]:
    """The keyword arguments that a URL stands for, ``path`` among them.

    ``lmdb:///var/lib/app/data?db=0`` is an absolute path, ``lmdb://./data`` a relative one.

    Raises:
        ValueError: it is no such URL, or a value cannot be meant.
    """
    parts = urlsplit(url)
    if parts.scheme != SCHEME:
        given = f"{parts.scheme}://..." if parts.scheme else "a path alone"
        raise ValueError(f"a store's URL is like {SCHEME}:///var/lib/app/data?db=0, not {given}")
    if _SERVER.search(parts.netloc):
        raise ValueError(
            f"the URL {url!r} names a server, and a store has none: say {SCHEME}:///path/of/the/store"
        )
    if parts.fragment:
        raise ValueError(f"the URL {url!r} has a fragment: write %23 for a # in a path")
    path = unquote(parts.netloc + parts.path)
    if not path.strip("/"):
        raise ValueError(f"the URL {url!r} names no directory: say {SCHEME}:///path/of/the/store")
    arguments: dict[str, Any] = {"path": path}
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        arguments[name] = _parse(name, text)
    return arguments


def _parse(name: str, text: str) -> Any:
    if name in ("db", "protocol", "max_connections", "health_check_interval"):
        return _number(int, name, text)
    if name in ("socket_timeout", "socket_connect_timeout", "timeout"):
        return _number(float, name, text)
    if name in ("decode_responses", "allow_network_fs", "retry_on_timeout"):
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise ValueError(f"{name}={text} in the URL: say true or false")
    return text


def _number(kind: type[int | float], name: str, text: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{name}={text} in the URL is no number") from None
