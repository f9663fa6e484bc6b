"""The seam on which adapters are built. **Not a stable API**: it may change in any release, and is
meant for the adapters that are released together with the core.

An adapter keeps what is not a job in a `Space` of the store: entries by key, with a time at which they
expire. Its operations are functions of a transaction (`Txn`); each runs as a whole or not at all, alone
(`Space.write`) or with others of queues and spaces in one commit (`Space.collect`). Instead of polling,
`Space.wait` sleeps until an operation announces one of its keys (`Space.announce`).

An adapter with a layout of its own starts its keys with `key_prefix`. The kinds (the byte after that)
`v` and `x` are those of the entries.
"""

from __future__ import annotations

from equeue_core._clock import wall
from equeue_core._space import Space
from equeue_core._store import Cursor, Txn
from equeue_core._store._bell_descriptor import Descriptor, open_file
from equeue_core._store._combine import MISTAKES, Halfway, Operation
from equeue_core._store._keys import from_ordered_float, name_key, ordered_float
from equeue_core._store._permissions import make_directory
from equeue_core._store._registry import in_operation
from equeue_core._store._roster import Place, Roster
from equeue_core._store._scan import first_key, scan
from equeue_core._store._spaces import SpaceId, key_prefix
from equeue_core._store_handle import Sync

__all__ = [
    "MISTAKES",
    "Cursor",
    "Descriptor",
    "Halfway",
    "Operation",
    "Place",
    "Roster",
    "Space",
    "SpaceId",
    "Sync",
    "Txn",
    "first_key",
    "from_ordered_float",
    "in_operation",
    "key_prefix",
    "make_directory",
    "name_key",
    "open_file",
    "ordered_float",
    "scan",
    "wall",
]
