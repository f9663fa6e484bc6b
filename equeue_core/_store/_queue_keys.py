"""The keys of one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows

if TYPE_CHECKING:
    from equeue_core._store._environment import Environment


class Ledger:
    """Keys of one queue of one store, computed once."""

    __slots__ = (
        "cancelled",
        "counters",
        "done",
        "environment",
        "expiry",
        "failed",
        "failed_at",
        "id",
        "index",
        "lease",
        "pending",
        "pending_zero",
        "running",
        "scheduled",
        "unique",
    )

    def __init__(self, environment: Environment, queue_id: int) -> None:
        prefix = keys.U16.pack(queue_id)
        self.environment = environment
        self.id = queue_id
        self.counters = prefix + keys.COUNTERS
        self.pending = prefix + keys.PENDING
        self.pending_zero = self.pending + rows.PRIORITY_ZERO
        self.running = prefix + keys.RUNNING
        self.scheduled = prefix + keys.SCHEDULED
        self.done = prefix + keys.ENDED
        self.cancelled = prefix + keys.CANCELLED
        self.failed = prefix + keys.FAILED
        self.failed_at = prefix + keys.FAILED_AT
        self.index = prefix + keys.INDEX
        self.lease = prefix + keys.LEASE
        self.unique = prefix + keys.UNIQUE
        self.expiry = prefix + keys.EXPIRY

    def unique_key(self, unique: str) -> bytes:
        """Where the holder of a unique key is noted."""
        return self.unique + keys.name_key(unique.encode())
