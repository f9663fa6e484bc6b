"""Bringing a store of an older format up to date, in the first transaction."""

from __future__ import annotations

from typing import Any

from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core._store._format import FORMAT_NUMBER
from equeue_core._store._names import all_queues
from equeue_core._store._scan import scan
from equeue_core._store._txn import Txn


def upgrade(txn: Txn, record: dict[str, Any]) -> dict[str, Any]:
    """Change what the store of this format record has to have changed; its new format record."""
    if record["format"] < 2:
        _list_failures(txn)
    return {**record, "format": FORMAT_NUMBER}


def _list_failures(txn: Txn) -> None:
    """Format 2: failed jobs are listed by time."""
    for queue_id, _ in all_queues(txn):
        prefix = keys.U16.pack(queue_id)
        for key, value in scan(txn, prefix + keys.FAILED):
            failed_at = keys.ordered_float(rows.END.unpack_from(value)[0])
            txn.put(prefix + keys.FAILED_AT + failed_at + key[3:], b"")
