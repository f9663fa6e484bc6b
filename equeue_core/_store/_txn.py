"""The types of a running transaction and its cursor, as operations get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

if TYPE_CHECKING:
    Txn = lmdb.Transaction[bytes]
    Cursor = lmdb.Cursor[bytes]
else:
    Txn = lmdb.Transaction
    Cursor = lmdb.Cursor


def used_pages(txn: Txn) -> tuple[int, int]:
    """How many pages hold what is in the store, and the bytes of a page. Others are free, or bookkeeping."""
    pages = txn.stat()
    return pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"], pages["psize"]
