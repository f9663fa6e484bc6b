"""The contenders by name. The names are what tables and figures show."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from benchmarks.contenders._contender import Contender
from benchmarks.contenders.engine import Engine
from benchmarks.contenders.huey_storage import HueyStorage
from benchmarks.contenders.litequeue import LiteQueue
from benchmarks.contenders.lmdb_queue import LmdbQueue
from benchmarks.contenders.persist_queue import PersistQueue
from benchmarks.contenders.raw_lmdb import RawLmdb
from benchmarks.contenders.valkey_list import ValkeyList

OFF = "equeue, off"
OFF_NOT_KEPT = "equeue, off, DONE jobs not kept"
NORMAL = "equeue, normal"
FULL = "equeue, full"
LMDB_QUEUE = "lmdb-queue"
PERSIST_QUEUE = "persist-queue, FULL"
LITEQUEUE = "litequeue, FULL"
HUEY = "huey storage, FULL, no ack"
VALKEY = "Valkey, in memory"
VALKEY_FLUSHED = "Valkey, appendfsync always"
RAW_LMDB = "raw LMDB, same flushes"

_MAKERS: dict[str, Callable[[], Contender]] = {
    OFF: lambda: Engine("off"),
    OFF_NOT_KEPT: lambda: Engine("off", vacuum_interval=0.01),
    NORMAL: lambda: Engine("normal"),
    FULL: lambda: Engine("full"),
    LMDB_QUEUE: LmdbQueue,
    PERSIST_QUEUE: PersistQueue,
    LITEQUEUE: LiteQueue,
    HUEY: HueyStorage,
    VALKEY: lambda: ValkeyList(flushed=False),
    VALKEY_FLUSHED: lambda: ValkeyList(flushed=True),
    RAW_LMDB: RawLmdb,
}

__all__ = ["Contender", "installed", "make", "names", "versions"]


def names() -> tuple[str, ...]:
    return tuple(_MAKERS)


def make(name: str) -> Contender:
    """A new contender that is not opened yet."""
    return _MAKERS[name]()


def installed(wanted: Iterable[str]) -> list[str]:
    """Those of the named contenders whose packages are here."""
    return [name for name in wanted if make(name).installed()]


def versions() -> dict[str, str]:
    """Versions of all that takes part."""
    found = {"SQLite": sqlite3.sqlite_version}
    for name in _MAKERS:
        found.update(make(name).versions())
    return found
