"""The type of a running transaction, as operations get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

if TYPE_CHECKING:
    Txn = lmdb.Transaction[bytes]
else:
    Txn = lmdb.Transaction
