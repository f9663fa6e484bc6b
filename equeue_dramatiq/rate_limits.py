"""The state of Dramatiq's rate limiters and barriers in an equeue store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dramatiq.rate_limits import RateLimiterBackend

from equeue_core import Store, storage
from equeue_core.storage import SpaceId
from equeue_dramatiq._handles import Stored
from equeue_dramatiq._message import commit_held

if TYPE_CHECKING:
    from equeue_core.storage import Sync, Txn

_ROOM = 512
"""About how many bytes a new key takes."""


class LMDBRateLimiterBackend(Stored, RateLimiterBackend):
    """A rate limiter backend that needs no server: a directory, which may be the broker's.

    Each call is one transaction, so limits are exact over all threads and processes that use the
    directory. Where Dramatiq's own backends differ, this one does as its RedisBackend does: a key that
    is not there counts as 0; each successful change of a key gives it a new time to live, and one that
    is refused changes nothing; a notification is seen by all who wait for it and by those who come
    later, until its time is over. Unlike there, a wait may be shorter than a second, and counters and
    notifications of the same name do not get into each other's way.

    The slot of a `ConcurrentRateLimiter` whose holder was killed is free when the key's time to live is
    over: so long after the last change of the key by anybody.

    Making one touches no disk; the first use opens the store. It may be used by several threads, goes
    on working in a forked child, and can be pickled. Keys whose time is over are removed as others are
    changed, a few each time. After a power cut the very last change may be undone. Errors of the store
    (`equeue_core.EQueueError`) are raised as they are.

    Parameters:
        path: the store's directory (made if missing), or an `equeue_core.Store`; ``./data`` if
            neither this nor `store` is given.
        store: a store, as a keyword.
        namespace: the first part of each key in the store.
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
        namespace: str = "dramatiq-limits",
        sync: Sync = None,
        allow_network_fs: bool = False,
    ) -> None:
        self.namespace = namespace
        self._keep_in(
            SpaceId.DRAMATIQ_LIMITS, path, store, sync=sync, allow_network_fs=allow_network_fs
        )

    def add(self, key: str, value: int, ttl: int) -> bool:
        """Make a key, unless it is there.

        Parameters:
            key: the key.
            value: what it stands at then.
            ttl: milliseconds until which it is there.

        Returns:
            Whether it was made.
        """
        counter = self._counter(key)

        def run(txn: Txn) -> bool:
            if self._space.get(txn, counter) is not None:
                return False
            self._set(txn, counter, value, ttl)
            return True

        return self._change(run)

    def incr(self, key: str, amount: int, maximum: int, ttl: int) -> bool:
        """Add to a key, unless it would stand above the maximum.

        Parameters:
            key: the key; one that is not there stands at 0.
            amount: how much to add.
            maximum: the most that it may stand at.
            ttl: milliseconds until which it is there from now on.

        Returns:
            Whether it was changed.
        """
        return self._add(key, amount, ttl, lambda value: value <= maximum)

    def decr(self, key: str, amount: int, minimum: int, ttl: int) -> bool:
        """Subtract from a key, unless it would stand below the minimum.

        Parameters:
            key: the key; one that is not there stands at 0.
            amount: how much to subtract.
            minimum: the least that it may stand at.
            ttl: milliseconds until which it is there from now on.

        Returns:
            Whether it was changed.
        """
        # Who gives back must be able to on a full disk, too.
        return self._add(key, -amount, ttl, lambda value: value >= minimum, gives_back=True)

    def incr_and_sum(
        self, key: str, keys: Callable[[], Iterable[str]], amount: int, maximum: int, ttl: int
    ) -> bool:
        """Add to a key, unless it, or the sum of several keys, would stand above the maximum.

        Parameters:
            key: the key to change.
            keys: returns the keys to sum; called once, before anything else.
            amount: how much to add.
            maximum: the most that the key, and the sum, may stand at.
            ttl: milliseconds until which the key is there from now on.

        Returns:
            Whether it was changed.
        """
        counter = self._counter(key)
        summed = [self._counter(each) for each in keys()]

        def run(txn: Txn) -> bool:
            value = self._value(txn, counter) + amount
            total = amount + sum(self._value(txn, each) for each in summed)
            if value > maximum or total > maximum:
                return False
            self._set(txn, counter, value, ttl)
            return True

        return self._change(run)

    def wait(self, key: str, timeout: int | None) -> bool:
        """Wait for a notification.

        Parameters:
            key: what it is about.
            timeout: milliseconds to wait at most, exact to less than one; None: for ever.

        Returns:
            Whether there was one in time.
        """
        commit_held()
        event = self._event(key)
        seconds = None if timeout is None else max(0, timeout) / 1000
        return (
            self._space.wait([event], lambda txn: self._space.get(txn, event), seconds) is not None
        )

    def wait_notify(self, key: str, ttl: int) -> None:
        """Notify those who wait, and those who will.

        Parameters:
            key: what it is about.
            ttl: milliseconds until which the notification is there.
        """
        event = self._event(key)

        def run(txn: Txn) -> None:
            self._space.require_room(txn, _ROOM)
            self._space.put(txn, event, b"", storage.wall() + ttl / 1000)
            self._space.announce(txn, event)

        self._space.write(run)

    def _add(
        self,
        key: str,
        amount: int,
        ttl: int,
        may_be: Callable[[int], bool],
        gives_back: bool = False,
    ) -> bool:
        counter = self._counter(key)

        def run(txn: Txn) -> bool:
            value = self._value(txn, counter) + amount
            if not may_be(value):
                return False
            self._set(txn, counter, value, ttl, gives_back)
            return True

        return self._change(run)

    def _change(self, operation: Callable[[Txn], bool]) -> bool:
        # Who sees this change (the last one at a barrier, say) may look for what was stored before.
        commit_held()
        return self._space.write(operation)

    def _counter(self, key: str) -> bytes:
        return f"{self.namespace}:counter:{key}".encode()

    def _event(self, key: str) -> bytes:
        return f"{self.namespace}:event:{key}".encode()

    def _value(self, txn: Txn, counter: bytes) -> int:
        return int(self._space.get(txn, counter) or b"0")

    def _set(
        self, txn: Txn, counter: bytes, value: int, ttl: int, gives_back: bool = False
    ) -> None:
        if not gives_back:
            self._space.require_room(txn, _ROOM)
        self._space.put(txn, counter, b"%d" % value, storage.wall() + ttl / 1000)
