"""The connections of the RQ part by name. The names are what tables and figures show."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks._served import Address, Catalogue
from benchmarks.connections._contender import ConnectionContender
from benchmarks.connections.lmdb import Lmdb
from benchmarks.connections.redis import Redis

OFF = "LMDBRedis, off"
NORMAL = "LMDBRedis, normal"
FULL = "LMDBRedis, full"
REDIS = "Redis"
REDIS_FLUSHED = "Redis, appendfsync always"

_MAKERS: dict[str, Callable[[], ConnectionContender]] = {
    OFF: lambda: Lmdb("off"),
    NORMAL: lambda: Lmdb("normal"),
    FULL: lambda: Lmdb("full"),
    REDIS: Redis,
    REDIS_FLUSHED: lambda: Redis(flushed=True),
}

__all__ = ["Address", "ConnectionContender", "installed", "make", "serving", "versions"]

_catalogue = Catalogue(_MAKERS)
make, installed = _catalogue.make, _catalogue.installed
serving, versions = _catalogue.serving, _catalogue.versions
