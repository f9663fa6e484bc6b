"""An adapter's key space in a store: what it can do within a transaction, and with one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from equeue_core import _clock, _watch
from equeue_core._config import timeout_seconds
from equeue_core._handle import Handle
from equeue_core._store._bells import STORE
from equeue_core._store._spaces import Entries, SpaceId, bell
from equeue_core._typing import Self
from equeue_core.errors import QueueClosed

if TYPE_CHECKING:
    from equeue_core._store import Environment, Txn
    from equeue_core._store._combine import Operation
    from equeue_core._store._roster import Roster
    from equeue_core._store_handle import Store
    from equeue_core._transaction import Transaction

R = TypeVar("R")

_REMOVED = 4
"""Expired entries that a put removes at most: so they become fewer, and no put takes long."""


class Space(Handle):
    """Entries of one adapter in a store: a value for each key, both bytes, and a time at which it
    expires, if that is wanted.

    Like a `Queue`, it is a cheap handle: making one touches no disk, threads may share it, and it goes
    on working in a forked child. Its store's close closes it. It can be pickled.

    The methods whose first argument is a transaction are for operations: functions of a transaction,
    given to `write`, `read`, `wait` or `collect`. An operation may be run several times, so it changes
    nothing else and calls no code of the user's. It shares its commit with others, so it raises an
    `EQueueError` only before it has written. An entry that has expired is not there, whether it was
    removed already or not; each `put` removes a few of those.

    Parameters:
        store: the store.
        space_id: whose entries.
    """

    def __init__(self, store: Store, space_id: SpaceId) -> None:
        super().__init__()
        self.store = store
        self.space_id = SpaceId(space_id)
        self._entries = Entries(space_id)
        self._known: Environment | None = None
        store._adopt(self)

    @property
    def _environment(self) -> Environment:
        if self._closed:
            raise QueueClosed(f"this use of the store at {self.store.path} is closed")
        self._known = self.store._opened or self.store._environment
        return self._known

    # Within a transaction

    @property
    def _at_work(self) -> Environment:
        """The environment of the running operation. `_environment` raises if the handle was closed
        meanwhile, and an operation is too late for that.
        """
        assert self._known is not None, "operations are given to this space's methods"
        return self._known

    def get(self, txn: Txn, key: bytes) -> bytes | None:
        """The value; None if there is none."""
        return self._entries.get(txn, key, _clock.wall())

    def put(self, txn: Txn, key: bytes, value: bytes, expires: float | None = None) -> None:
        """Store a value, in place of another if there is one.

        Parameters:
            key, value: of any length.
            expires: until when it is there, in epoch seconds (see `wall`); None: for ever.
        """
        self._entries.put(txn, key, value, math.inf if expires is None else expires)
        self._entries.remove_expired(txn, _clock.wall(), _REMOVED)

    def delete(self, txn: Txn, key: bytes) -> None:
        """Remove the entry, if there is one."""
        self._entries.delete(txn, key)

    def announce(self, txn: Txn, key: bytes) -> None:
        """Wake those who wait for a change of this key, at the commit."""
        self._at_work.bells.broadcast(bell(self.space_id, key))

    def announce_to_all(self, txn: Txn) -> None:
        """Wake all that wait in this store, whatever for, at the commit."""
        self._at_work.bells.broadcast(STORE)

    def require_room(self, txn: Txn, adds: int) -> None:
        """Refuse to add about so many bytes if the disk is so full that completing jobs needs the rest.

        For operations whose `adds` is not told to `write`. Call it before anything is written.

        Raises:
            DiskFull: there is no room.
        """
        self._at_work.require_room(txn, adds)

    # Transactions

    def read(self, look: Callable[[Txn], R]) -> R:
        """The result of `look`, which changes nothing.

        Raises:
            QueueClosed: this, or the store, was closed.
        """
        result: R = self._environment.read(look)
        return result

    def write(self, operation: Callable[[Txn], R], adds: int = 0) -> R:
        """The result of `operation`, once it is committed.

        Parameters:
            operation: what to do.
            adds: about how many bytes it adds that must survive a power cut (with ``sync="full"``),
                and may not use the last room of the disk. 0: it is kept as the end of a job is: a
                power cut may undo the very last commit.

        Raises:
            QueueClosed: this, or the store, was closed.
            DiskFull, QueueFull: there is no room; nothing was written.
            EQueueError: what the operation itself raised; nothing was written.
        """
        result: R = self._environment.write(operation, adds)
        return result

    def is_in(self, store: Store) -> bool:
        """Whether `store` is a handle on the same store, so that `collect` accepts its transactions.

        Raises:
            QueueClosed: this, or one of the stores, was closed.
        """
        return store is self.store or store._environment is self._environment

    def collect(self, transaction: Transaction, operation: Operation, adds: int = 0) -> None:
        """Have `operation` run in a ``store.transaction()``, among what that collects, in the order of
        the calls; `adds` as for `write`.

        Raises:
            TransactionError: the transaction is of another store, or its block has ended.
        """
        transaction._collect(self, self._environment, operation, adds)

    @property
    def roster(self) -> Roster:
        """The places of the adapter's clients; operations may use them.

        Raises:
            QueueClosed: this, or the store, was closed before its first use.
        """
        return (self._known or self._environment).roster

    def wait(
        self, keys: Iterable[bytes], look: Callable[[Txn], R | None], timeout: float | None = None
    ) -> R | None:
        """What `look` finds, as soon as it finds something.

        Parameters:
            keys: it looks again when one of them is announced, and once a second in any case.
            look: returns None as long as there is nothing. It changes nothing.
            timeout: seconds to wait at most, exact to less than a millisecond; None: for ever.

        Returns:
            None if nothing was found in time.

        Raises:
            QueueClosed: this, or the store, was closed, before or meanwhile.
            ValueError: the timeout is negative.
        """
        bells = self._bells(keys)
        found: R | None = _watch.wait_for(self, bells, look, timeout_seconds(timeout))
        return found

    def claim(
        self,
        keys: Iterable[bytes],
        operation: Callable[[Txn], R | None],
        timeout: float | None = None,
        adds: int = 0,
        looked: bool = False,
    ) -> R | None:
        """What `operation` finds and takes in the same transaction, as soon as it finds something.

        Parameters:
            keys: it is run again when one of them is announced, and once a second in any case.
            operation: returns None as long as there is nothing.
            timeout, adds: as for `wait` and `write`.
            looked: it has just found nothing, so that a first look is not needed.

        Returns:
            None if nothing was found in time.

        Raises:
            QueueClosed, DiskFull, QueueFull, EQueueError: as for `write`, before or meanwhile.
            ValueError: the timeout is negative.
        """
        found: R | None = _watch.wait_for(
            self,
            self._bells(keys),
            operation,
            timeout_seconds(timeout),
            adds=adds,
            writes=True,
            looked=looked,
        )
        return found

    def _bells(self, keys: Iterable[bytes]) -> tuple[int, ...]:
        return tuple(sorted({bell(self.space_id, key) for key in keys}))

    def wake(self) -> None:
        """Let those look again who wait through this very handle. It needs no lock, and never waits."""
        self._wake()

    # Closing

    def close(self) -> None:
        """Close the handle, not the store; may be called again. Who waits gets `QueueClosed`."""
        self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.store, self.space_id)

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"<Space {self.space_id.name} at {self.store.path!r}{closed}>"
