"""One client's connection: what a server would remember of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from equeue_core import Store
from equeue_core.storage import Space, SpaceId, Sync

if TYPE_CHECKING:
    from equeue_rq._commands._table import Command

_getpid = os.getpid


class Session:
    """The state of one connection to a store.

    Parameters:
        path: the store's directory.
        sync, allow_network_fs: as for `equeue_core.Store`.

    Attributes:
        db: the number of the database in use.
        protocol: in which version of the protocol answers are given, 2 or 3.
        name: the connection's name; empty: none.
        watched: the stamps that keys had when they were watched, by database and name.
        queued: the commands since MULTI; None outside of a transaction.
        broken: a command since MULTI was refused, so EXEC will be.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, sync: Sync = None, allow_network_fs: bool = False
    ) -> None:
        self.store = Store(path, sync=sync, allow_network_fs=allow_network_fs)
        self.space = Space(self.store, SpaceId.RQ)
        self.pid = _getpid()
        self.db = 0
        self.protocol = 2
        self.name = b""
        self.watched: dict[tuple[int, bytes], int] = {}
        self.queued: list[tuple[Command, list[bytes]]] | None = None
        self.broken = False

    def close(self) -> None:
        """End it; may be called again. Who waits gets an error."""
        self.store.close()
