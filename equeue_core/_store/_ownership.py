"""Becoming an owner: the records in the store that go with the kernel's lock."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, Any

import msgpack

from equeue_core._store import _keys as keys
from equeue_core._store._scan import scan
from equeue_core._store._txn import Txn

if TYPE_CHECKING:
    from equeue_core._store._environment import Environment


def enlist(environment: Environment, queue_id: int) -> int:
    """Note that this process claims from the queue; its owner id, taken at the first call.

    The id's lock is held before the record can be seen, and the record before any claim that names
    it.
    """
    owners = environment.owners
    if queue_id in environment.claimed_in and owners.owner_id is not None:
        return owners.owner_id

    def run(txn: Txn) -> int:
        owner = owners.owner_id or _take_id(environment, txn)
        packed = keys.U64.pack(owner)
        if txn.get(keys.OWNER + packed) is None:
            txn.put(keys.OWNER + packed, msgpack.packb(_describe_process()))
            environment.bells.broadcast(0)  # sleepers watch every owner
        txn.put(keys.OWNER_QUEUE + packed + keys.U16.pack(queue_id), b"")
        return owner

    owner: int = environment.write(run)
    environment.claimed_in.add(queue_id)
    return owner


def _take_id(environment: Environment, txn: Txn) -> int:
    raw = txn.get(keys.NEXT_OWNER)
    owner = keys.U64.unpack(raw)[0] if raw is not None else 1
    while True:
        try:
            environment.owners.become(owner)
            break
        except BlockingIOError:  # somebody took it in a transaction that was not committed
            owner += 1
    txn.put(keys.NEXT_OWNER, keys.U64.pack(owner + 1))
    return int(owner)


def _describe_process() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": platform.node(), "since": time.time()}


def owner_rows(txn: Txn) -> list[tuple[int, dict[str, Any]]]:
    """Id and description of every owner on record, dead ones that were not yet cleared away
    included.
    """
    return [
        (keys.U64.unpack(key[3:])[0], msgpack.unpackb(value))
        for key, value in scan(txn, keys.OWNER)
    ]
