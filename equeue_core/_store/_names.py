"""Queue names and the two-byte ids that stand for them in keys."""

from __future__ import annotations

import time

import msgpack

from equeue_core._store import _keys as keys
from equeue_core._store._scan import scan
from equeue_core._store._txn import Txn
from equeue_core.errors import StoreError

NAME_LIMIT = 65_535
"""Bytes of UTF-8 that a queue's name may have."""


def check_name(name: str) -> str:
    """`name`, if it can name a queue: any text but the empty one.

    Raises:
        TypeError: not a string.
        ValueError: empty, too long, or not encodable as UTF-8.
    """
    if not isinstance(name, str):
        raise TypeError(f"a queue's name is a string, not {type(name).__name__}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"a queue's name must be valid Unicode text: {error}") from error
    if not 0 < length <= NAME_LIMIT:
        raise ValueError(f"a queue's name must have 1 to {NAME_LIMIT} bytes of UTF-8, not {length}")
    return name


def find_queue(txn: Txn, name: str) -> int | None:
    """The id of the queue, None if the store has none of that name."""
    raw = txn.get(keys.QUEUE_BY_NAME + keys.name_key(name.encode()))
    return None if raw is None else int(keys.U16.unpack(raw)[0])


def make_queue(txn: Txn, name: str) -> int:
    """The id of the queue, which is made if need be.

    Raises:
        StoreError: the store has no id left.
    """
    existing = find_queue(txn, name)
    if existing is not None:
        return existing
    raw = txn.get(keys.NEXT_QUEUE)
    queue_id: int = keys.U16.unpack(raw)[0] if raw is not None else keys.FIRST_QUEUE
    if queue_id >= keys.MAX_QUEUES:
        most = keys.MAX_QUEUES - keys.FIRST_QUEUE
        raise StoreError(f"the store has {most} queues, the most it can have")
    packed = keys.U16.pack(queue_id)
    txn.put(keys.NEXT_QUEUE, keys.U16.pack(queue_id + 1))
    txn.put(keys.QUEUE_BY_NAME + keys.name_key(name.encode()), packed)
    txn.put(keys.QUEUE_BY_ID + packed, msgpack.packb({"name": name, "created": time.time()}))
    return queue_id


def all_queues(txn: Txn) -> list[tuple[int, str]]:
    """Id and name of every queue, in the order in which they were made."""
    return [
        (keys.U16.unpack(key[3:])[0], msgpack.unpackb(value)["name"])
        for key, value in scan(txn, keys.QUEUE_BY_ID)
    ]
