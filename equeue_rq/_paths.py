"""Paths where RQ wants a connection."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, Union

from redis import Redis

from equeue_core.storage import Sync
from equeue_rq._address import parse_url
from equeue_rq.client import LMDBRedis

Location = Union[str, "os.PathLike[str]", Redis]
"""A store's directory, its ``lmdb:`` URL, or a connection."""

T = TypeVar("T", bound=type)

_clients: weakref.WeakValueDictionary[tuple[Any, ...], LMDBRedis] = weakref.WeakValueDictionary()


def connect(
    path: str | os.PathLike[str],
    *,
    db: int = 0,
    sync: Sync = None,
    allow_network_fs: bool = False,
    **options: Any,
) -> LMDBRedis:
    """The connection to a store: the same one again, as long as any is in use, if no `options` are given.

    Parameters:
        path: the store's directory, made with mode 0700 if missing, or a URL such as
            ``lmdb:///var/lib/app/data?db=0``.
        db: the number of the database, 0 to 15.
        sync: the durability, see `equeue_core.Store`. None: the store's own, ``"full"`` for a new store.
        allow_network_fs: open a store on a network file system all the same.
        options: further options of redis-py's connections; see `LMDBRedis`.

    Raises:
        TypeError: there is no such option.
        ValueError: it is no such URL.
    """
    given = {"db": db, "sync": sync, "allow_network_fs": allow_network_fs, **options}
    text = os.fspath(path)
    if isinstance(text, str) and "://" in text:
        given.update(parse_url(text))
        text = given.pop("path")
    shared = os.path.abspath(text), *sorted(given.items(), key=repr)
    if given.keys() != {"db", "sync", "allow_network_fs"}:
        return LMDBRedis(text, **given)
    found = _clients.get(shared)
    # Two threads may both make one: either is as good.
    return _clients.setdefault(shared, LMDBRedis(text, **given)) if found is None else found


def as_connection(where: Any) -> Any:
    """The connection that a path stands for; anything else as it is."""
    return connect(where) if isinstance(where, (str, os.PathLike)) else where


def accepts_paths(cls: T) -> T:
    """Give a subclass of one of RQ's classes, for each of its methods with a parameter ``connection``, one
    that takes a path there, too.
    """
    for name in dir(cls):
        if name in vars(cls) or (name.startswith("_") and name != "__init__"):
            continue
        for base in cls.__mro__:
            attribute = vars(base).get(name)
            method: Any = getattr(attribute, "__func__", attribute)
            names = list(inspect.signature(method).parameters) if inspect.isfunction(method) else []
            if "connection" in names:
                taking = _taking_paths(cls, name, method, names.index("connection"))
                is_of_class = isinstance(attribute, classmethod)
                setattr(cls, name, classmethod(taking) if is_of_class else taking)
                break
    return cls


def _taking_paths(
    cls: type, name: str, method: Callable[..., Any], position: int
) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self_or_cls: Any, *args: Any, **kwargs: Any) -> Any:
        if "connection" in kwargs:
            kwargs["connection"] = as_connection(kwargs["connection"])
        elif len(args) >= position:
            args = (*args[: position - 1], as_connection(args[position - 1]), *args[position:])
        return getattr(super(cls, self_or_cls), name)(*args, **kwargs)

    return call
