"""The event backend that dramatiq-abort needs, in an equeue store. Needs the package dramatiq-abort."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from dramatiq_abort import Event, EventBackend

from equeue_core import Store, storage
from equeue_core.storage import SpaceId
from equeue_dramatiq._handles import Stored
from equeue_dramatiq._message import commit_held

if TYPE_CHECKING:
    from equeue_core.storage import Sync, Txn


class LMDBEventBackend(Stored, EventBackend):  # type: ignore[misc]  # the package has no types
    """An event backend for dramatiq-abort that needs no server: a directory, which may be the
    broker's.

    As with dramatiq-abort's own backends, an event is there for the first who asks for it. Making one
    touches no disk; it may be used by several threads, goes on working in a forked child, and can be
    pickled. Errors of the store (`equeue_core.EQueueError`) are raised as they are.

    Parameters:
        path: the store's directory (made if missing), or an `equeue_core.Store`; ``./data`` if
            neither this nor `store` is given.
        store: a store, as a keyword.
        namespace: the first part of each event's key in the store.
        sync: ``"full"``, ``"normal"`` or ``"off"``, see `equeue_core.Queue`; None: the store's own.
        allow_network_fs: open a store on a network file system all the same.

    Raises:
        ValueError, TypeError: an option cannot be meant.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Store | None = None,
        *,
        store: Store | None = None,
        namespace: str = "dramatiq-aborts",
        sync: Sync = None,
        allow_network_fs: bool = False,
    ) -> None:
        self.namespace = namespace
        self._keep_in(
            SpaceId.DRAMATIQ_EVENTS, path, store, sync=sync, allow_network_fs=allow_network_fs
        )

    def wait_many(self, keys: Iterable[str], timeout: int | None) -> Event | None:
        """Wait for one of several events, and take it.

        Parameters:
            keys: the events.
            timeout: milliseconds to wait at most, exact to less than one; None: for ever.

        Returns:
            The event; None if none came in time.
        """
        commit_held()
        names = {self._key(key): key for key in keys}
        seconds = None if timeout is None else max(0, timeout) / 1000
        return _event(self._space.claim(names, partial(self._take, names), seconds))

    def poll(self, key: str) -> Event | None:
        """Take an event if it is there.

        Parameters:
            key: the event.

        Returns:
            The event; None if it is not there.
        """
        name = self._key(key)
        if self._space.read(partial(self._space.get, key=name)) is None:
            return None
        return _event(self._space.write(partial(self._take, {name: key})))

    def notify(self, events: Iterable[Event], ttl: int) -> None:
        """Signal events, all in one commit.

        Parameters:
            events: the events; their parameters must be what JSON can hold.
            ttl: milliseconds until which they are there.
        """
        encoded = [(self._key(key), json.dumps(params).encode()) for key, params in events]

        def run(txn: Txn) -> None:
            self._space.require_room(txn, sum(len(key) + len(params) for key, params in encoded))
            expires = storage.wall() + ttl / 1000
            for key, params in encoded:
                self._space.put(txn, key, params, expires)
                self._space.announce(txn, key)

        self._space.write(run)

    def _key(self, key: str) -> bytes:
        return f"{self.namespace}:{key}".encode()

    def _take(self, names: dict[bytes, str], txn: Txn) -> tuple[str, bytes] | None:
        for name, key in names.items():
            found = self._space.get(txn, name)
            if found is not None:
                self._space.delete(txn, name)
                return key, found
        return None


def _event(taken: tuple[str, bytes] | None) -> Event | None:
    return None if taken is None else Event(taken[0], json.loads(taken[1]))
