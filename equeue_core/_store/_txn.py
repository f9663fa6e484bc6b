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
