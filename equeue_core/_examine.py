"""What can be known of a store as a whole, for ``equeue doctor`` and for metrics."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equeue_core._maintenance import Owner, recorded_owners
from equeue_core._store import _mounts
from equeue_core._store._txn import used_pages

if TYPE_CHECKING:
    from equeue_core._store import Txn
    from equeue_core._store_handle import Store


@dataclass(frozen=True)
class Examination:
    """A store's size, place and owners.

    Attributes:
        file_bytes: size of the data file.
        live_bytes: how much of it is in use; the rest is used again, or given back by ``compact``.
        free_bytes: free space of the file system, for this user.
        disk_bytes: size of the file system.
        file_system: its type; None if unknown.
        network: the type, if it is a network file system.
        live, dead: the owners that have a record; the dead ones' jobs were not yet given back.
    """

    file_bytes: int
    live_bytes: int
    free_bytes: int
    disk_bytes: int
    file_system: str | None
    network: str | None
    live: list[Owner]
    dead: list[Owner]


def examine(store: Store) -> Examination:
    """Look at a store; nothing changes."""
    environment = store._environment
    used, owners = environment.read(_look)
    alive = {each.owner_id: environment.owners.is_alive(each.owner_id) for each in owners}
    usage = shutil.disk_usage(environment.directory)
    return Examination(
        file_bytes=environment.size(),
        live_bytes=used,
        free_bytes=usage.free,
        disk_bytes=usage.total,
        file_system=_mounts.file_system_type(environment.directory),
        network=_mounts.network_file_system(environment.directory),
        live=[each for each in owners if alive[each.owner_id]],
        dead=[each for each in owners if not alive[each.owner_id]],
    )


def _look(txn: Txn) -> tuple[int, list[Owner]]:
    pages, size = used_pages(txn)
    return pages * size, recorded_owners(txn)
