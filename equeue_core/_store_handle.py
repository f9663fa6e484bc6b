"""A store as users hold it: the directory with its queues."""

from __future__ import annotations

import os
import re
import weakref
from typing import TYPE_CHECKING, Any, Literal

from equeue_core import _config as config
from equeue_core import _maintenance
from equeue_core._store import Environment, _apart, _format, _registry
from equeue_core._store._names import all_queues
from equeue_core._transaction import Transaction
from equeue_core._typing import Self
from equeue_core.errors import QueueClosed

if TYPE_CHECKING:
    from equeue_core._handle import Handle
    from equeue_core._maintenance import CheckReport, Owner
    from equeue_core._queue import Queue

Sync = Literal["full", "normal", "off"] | bool | None
"""What ``sync`` takes: a mode, True for ``"full"``, False for ``"off"``, None for the store's
own.
"""


_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
"""What a server's address begins with; it would be a directory as well."""


class Store:
    """A directory with any number of queues.

    Making one touches no disk; the first operation opens the store. All handles of a process on one
    directory, by whatever path, share one environment, and go on working in a forked child.

    Parameters:
        path: the directory; made with mode 0700 if missing.
        sync: the durability, see `Queue`. None: the store's own, ``"full"`` for a new store.
        map_size: bytes of live data at which ``put`` raises `QueueFull`. None: no limit but the
            disk's.
        allow_network_fs: open a store on a network file system all the same.

    Raises:
        ValueError, TypeError: an option cannot be meant.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: Sync = None,
        map_size: int | None = None,
        allow_network_fs: bool = False,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a store's path is a str or an os.PathLike, not {path!r}")
        text = os.fspath(path)
        if not isinstance(text, str) or not text or "\0" in text or _URL.match(text):
            raise ValueError(f"a store's path is the name of a directory, not {path!r}")
        self.path = text
        # Relative to where it was made, not to where the process is at its first use.
        self._absolute = os.path.abspath(text)
        self._sync = _format.sync_mode(sync)
        self._map_size = None if map_size is None else config.count("map_size", map_size)
        self._allow_network_fs = allow_network_fs
        self._opened: Environment | None = None
        self._closed = False
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()

    @property
    def _environment(self) -> Environment:
        if self._closed:
            raise QueueClosed(f"the store at {self.path} is closed")
        return self._opened or self._open()

    def _open(self) -> Environment:
        with _registry.lock():
            if self._opened is None:
                opened = _registry.acquire(self._absolute, self._sync, self._allow_network_fs)
                if self._opened is None:
                    self._opened = opened
                else:  # by a signal handler meanwhile: one handle, once
                    _registry.release(opened)
            return self._opened

    def _adopt(self, handle: Handle) -> None:
        """Have `handle` closed with this one."""
        self._handles.add(handle)

    @property
    def sync(self) -> str:
        """The store's durability: ``"full"``, ``"normal"`` or ``"off"``."""
        return self._environment.sync

    def queue(self, name: str = "default", **options: Any) -> Queue[Any]:
        """A handle on the queue `name`, made at its first use; options as for `Queue`."""
        from equeue_core._queue import Queue

        return Queue(self, name, **options)

    def queues(self) -> list[str]:
        """Names of the store's queues, in the order in which they were made."""
        return [name for _, name in self._environment.read(all_queues)]

    def stats(self) -> dict[str, dict[str, int]]:
        """``Queue.stats()`` of every queue, by name."""
        return _maintenance.all_stats(self._environment)

    def transaction(self) -> Transaction:
        """A ``with`` block that collects operations on any queues and applies them in one
        commit.
        """
        return Transaction(self)

    def owners(self) -> list[Owner]:
        """The live processes that claim jobs."""
        return _maintenance.live_owners(self._environment)

    def backup(self, destination: str | os.PathLike[str]) -> None:
        """Write a consistent, compacted copy of the store, which stays in use, to a new or empty
        directory.

        Other operations wait while the data is copied. Jobs that are running are running in the
        copy, too; opened, it gives them back.

        Raises:
            StoreAccessError: the destination is not empty, or cannot be written.
            DiskFull: it has no room.
        """
        _maintenance.backup(self._environment, os.fspath(destination))

    def check(self) -> CheckReport:
        """Walk through everything: the file's pages, indexes against jobs, counters against a
        recount.
        """
        return _maintenance.check(self._environment)

    def compact(self) -> tuple[int, int]:
        """Give unused space back to the file system; bytes before and after.

        Raises:
            StoreBusy: another process has the store open.
            DiskFull: there is no room for the copy.
        """
        return _maintenance.compact(self._environment)

    def configure(self, *, sync: Sync = None) -> None:
        """Change what is stored with the store.

        Parameters:
            sync: the new durability for all processes; None leaves it.

        Raises:
            StoreBusy: another process has the store open.
            ValueError: there is no such mode.
        """
        mode = _format.sync_mode(sync)
        if mode is not None:
            self._sync = None  # what this handle asked for before no longer binds it
            _maintenance.change_sync(self._environment, mode)

    def close(self) -> None:
        """Close the handle and its queues; may be called again, also by a destructor.

        The last handle of the process on the store gives jobs still in hand back, without spending
        a retry.
        """
        lock = _registry.lock()
        if not lock.acquire(blocking=not _registry.in_operation()):
            # In a destructor, say, which the garbage collector ran in the midst of an operation: who
            # has the lock may wait for this thread.
            _apart.begin(self.close)
            return
        try:
            self._closed = True
            environment, self._opened = self._opened, None
            for handle in list(self._handles):
                handle._shut()
            if environment is not None:
                _registry.release(environment)
        finally:
            lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._absolute, self._sync, self._map_size, self._allow_network_fs)
        return _rebuild, (type(self), *arguments)

    def __repr__(self) -> str:
        return f"<Store at {self._absolute!r}{', closed' if self._closed else ''}>"


def _rebuild(
    kind: type[Store], path: str, sync: Sync, map_size: int | None, allow_network_fs: bool
) -> Store:
    """A store handle from its pickle: not open yet."""
    return kind(path, sync=sync, map_size=map_size, allow_network_fs=allow_network_fs)
