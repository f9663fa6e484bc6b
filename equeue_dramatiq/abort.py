"""The event backend that dramatiq-abort needs, in an equeue store. Needs the package dramatiq-abort."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from dramatiq_abort import Event, EventBackend

from equeue_core import Store, storage
from equeue_core.storage import Space, SpaceId
from equeue_dramatiq._handles import open_store
from equeue_dramatiq._message import commit_held

if TYPE_CHECKING:
    from equeue_core.storage import Sync, Txn


class LMDBEventBackend(EventBackend):  # type: ignore[misc]  # the package has no types
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
        self.store = open_store(path, store, sync=sync, allow_network_fs=allow_network_fs)
        self._owns_store = self.store not in (path, store)
        self._space = Space(self.store, SpaceId.DRAMATIQ_EVENTS)

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
        until = None if timeout is None else monotonic() + timeout / 1000
        while True:
            left = None if until is None else max(0.0, until - monotonic())
            found = self._space.wait(names, partial(self._first, list(names)), left)
            if found is None:
                return None
            params = self._take(found)
            if params is not None:  # None: somebody else was faster
                return Event(names[found], params)

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
        params = self._take(name)
        return None if params is None else Event(key, params)

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

    def close(self) -> None:
        """Close the handle; may be called again. Who waits gets `equeue_core.QueueClosed`."""
        self._space.close()
        if self._owns_store:
            self.store.close()

    def _key(self, key: str) -> bytes:
        return f"{self.namespace}:{key}".encode()

    def _first(self, names: list[bytes], txn: Txn) -> bytes | None:
        return next((name for name in names if self._space.get(txn, name) is not None), None)

    def _take(self, name: bytes) -> dict[str, Any] | None:
        def run(txn: Txn) -> bytes | None:
            found = self._space.get(txn, name)
            if found is not None:
                self._space.delete(txn, name)
            return found

        found = self._space.write(run)
        return None if found is None else dict(json.loads(found))
