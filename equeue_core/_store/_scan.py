"""Walking through the keys under a prefix."""

from __future__ import annotations

from collections.abc import Iterator

from equeue_core._store._txn import Txn


def scan(txn: Txn, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Key and value of everything under `prefix`, from `start` on. The keys found may be deleted
    meanwhile.
    """
    with txn.cursor() as cursor:
        found = cursor.set_range(start or prefix)
        while found:
            key, value = cursor.item()
            if not key.startswith(prefix):
                return
            yield key, value
            found = cursor.set_range(key + b"\0")


def first_key(txn: Txn, prefix: bytes) -> bytes | None:
    """The smallest key under `prefix`."""
    with txn.cursor() as cursor:
        if cursor.set_range(prefix):
            key = cursor.key()
            if key.startswith(prefix):
                return key
    return None
