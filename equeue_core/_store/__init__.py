"""The store: one LMDB file, one kernel lock, and what lives beside them. Nothing else imports
lmdb.
"""

from __future__ import annotations

from equeue_core._store._environment import Environment
from equeue_core._store._txn import Cursor, Txn

__all__ = ["Cursor", "Environment", "Txn"]
