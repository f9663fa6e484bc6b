"""The format record: what kind of store this is, and how it is kept.

The rule for changing FORMAT_NUMBER: raise it when an older release would misread or damage what a newer one
writes. A release opens its own number and every lower one it names in READABLE (upgrading in the
first transaction), and refuses a higher one. Fields may be added to the record without raising it;
unknown fields are kept.
"""

from __future__ import annotations

import time
from typing import Any

import msgpack

from equeue_core._store._keys import FORMAT
from equeue_core._store._txn import Txn
from equeue_core.errors import (
    ForeignStoreError,
    QueueCorrupted,
    StoreOptionError,
    StoreVersionError,
)

FORMAT_NUMBER = 2
READABLE = frozenset({1, 2})

SYNC_MODES = ("full", "normal", "off")


def sync_mode(value: str | bool | None) -> str | None:
    """The canonical name of a ``sync`` argument: True is full, False is off, None stays None.

    Raises:
        ValueError: it is no mode.
    """
    if value is None:
        return None
    if value is True:
        return "full"
    if value is False:
        return "off"
    if value in SYNC_MODES:
        return value
    raise ValueError(
        f"sync must be 'full', 'normal' or 'off' (or True, False, None), not {value!r}"
    )


def read_format(txn: Txn, directory: str) -> dict[str, Any] | None:
    """The format record, None in an empty database.

    Raises:
        StoreVersionError: a newer release wrote it.
        QueueCorrupted: it makes no sense.
        ForeignStoreError: the database is not empty and not ours.
    """
    raw = txn.get(FORMAT)
    if raw is None:
        _refuse_foreign(txn, directory)
        return None
    record = _unpack(raw, directory)
    if record["format"] not in READABLE:
        raise StoreVersionError(
            f"the store at {directory} has format {record['format']}, this release of equeue reads "
            f"{', '.join(map(str, sorted(READABLE)))}: upgrade equeue to open it"
        )
    return record


def _unpack(raw: bytes, directory: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = msgpack.unpackb(raw)
        int(record["format"])
        if record["format"] in READABLE and record["sync"] not in SYNC_MODES:
            raise ValueError(f"no such mode: {record['sync']!r}")
    except Exception as error:
        raise QueueCorrupted(
            f"the format record of the store at {directory} is damaged "
            f"({type(error).__name__}: {error}): stop its users, restore data.mdb from a backup, "
            "or remove the directory to start with an empty store"
        ) from error
    return record


def _refuse_foreign(txn: Txn, directory: str) -> None:
    with txn.cursor() as cursor:
        if not cursor.first():
            return
    if txn.get(b"meta/stats") is not None or txn.get(b"meta/tail") is not None:
        raise ForeignStoreError(
            f"{directory} holds an lmdb-queue store, which equeue does not share: work it off with "
            "lmdb-queue, or copy its jobs over with put(), and give equeue a directory of its own"
        )
    raise ForeignStoreError(
        f"{directory} holds another program's LMDB database: give equeue a directory of its own"
    )


def new_format(sync: str) -> dict[str, Any]:
    """The format record of a store made now."""
    return {"format": FORMAT_NUMBER, "sync": sync, "created": time.time()}


def write_format(txn: Txn, record: dict[str, Any]) -> None:
    """Store the record."""
    txn.put(FORMAT, msgpack.packb(record))


def check_sync(asked: str | None, stored: str, directory: str) -> None:
    """Refuse a handle that would promise another durability than the store gives.

    Raises:
        StoreOptionError: `asked` is a mode, and not the stored one.
    """
    if asked is not None and asked != stored:
        raise StoreOptionError(
            f"the store at {directory} was made with sync={stored!r}, not {asked!r}: leave sync out to use "
            f"the store's own, or change it for all processes with Store(path).configure(sync={asked!r})"
        )
