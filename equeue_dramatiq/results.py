"""Dramatiq's results in an equeue store."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from dramatiq.results import ResultBackend, ResultMissing, ResultTimeout
from dramatiq.results.backend import DEFAULT_TIMEOUT

from equeue_core import Store, storage
from equeue_core.storage import SpaceId
from equeue_dramatiq._handles import Stored
from equeue_dramatiq._message import commit_held, ending_message

if TYPE_CHECKING:
    from dramatiq import Message
    from dramatiq.encoder import Encoder

    from equeue_core.storage import Operation, Sync, Txn


class LMDBResultBackend(Stored, ResultBackend):
    """A results backend that needs no server: a directory, which may be the broker's.

    Making one touches no disk; the first use opens the store. It may be used by several threads, goes
    on working in a forked child, and can be pickled (if its encoder can). A result can be read any
    number of times until its time is over. Results whose time is over are removed as others are
    stored, a few each time.

    What the `Results` middleware stores when a message has been processed is committed together with
    the message's ack, if the broker is an `LMDBBroker` on the same directory and no middleware but
    Dramatiq's own could tell anybody before the ack that the message is done.

    Errors of the store (`equeue_core.EQueueError`) are raised as they are.

    Parameters:
        path: the store's directory (made if missing), or an `equeue_core.Store`; ``./data`` if
            neither this nor `store` is given.
        store: a store, as a keyword.
        namespace: the first part of each result's key.
        encoder: how results become bytes; None: Dramatiq's (JSON, unless set otherwise).
        use_namespace_prefix_keys: whether keys are stored in plain text instead of as their hashes;
            for this Dramatiq must be 2.2 or newer.
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
        namespace: str = "dramatiq-results",
        encoder: Encoder | None = None,
        use_namespace_prefix_keys: bool = False,
        sync: Sync = None,
        allow_network_fs: bool = False,
    ) -> None:
        options: dict[str, Any] = {"namespace": namespace, "encoder": encoder}
        if use_namespace_prefix_keys:  # older versions have no such option
            options["use_namespace_prefix_keys"] = True
        super().__init__(**options)
        self._keep_in(
            SpaceId.DRAMATIQ_RESULTS, path, store, sync=sync, allow_network_fs=allow_network_fs
        )

    def get_result(
        self, message: Message[Any], *, block: bool = False, timeout: int | None = None
    ) -> Any:
        """What the message's actor returned.

        Parameters:
            message: the message.
            block: whether to wait for the result.
            timeout: milliseconds to wait at most, exact to less than one; None: ten seconds. 0: not at
                all.

        Raises:
            ResultMissing: there is none, and it was not waited for.
            ResultTimeout: there was none in time.
            ResultFailure: the actor raised an exception.
        """
        commit_held()
        key = self.build_message_key(message).encode()
        look = partial(self._space.get, key=key)
        if block:
            milliseconds = DEFAULT_TIMEOUT if timeout is None else timeout
            data = self._space.wait([key], look, max(0, milliseconds) / 1000)
        else:
            data = self._space.read(look)
        if data is None:
            raise ResultTimeout(message) if block else ResultMissing(message)
        return self.unwrap_result(self.encoder.decode(data))  # type: ignore[no-untyped-call]

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        data = self.encoder.encode(result)
        operation = self.store_operation(message_key, data, ttl)
        ending = ending_message()
        if ending is not None and ending.holds_result and self._space.is_in(ending.store):
            ending.hold(partial(self._space.collect, operation=operation))
            return

        def run(txn: Txn) -> None:
            self._space.require_room(txn, len(data))
            operation(txn)

        self._space.write(run)

    def store_operation(self, message_key: str, data: bytes, ttl: int) -> Operation:
        """What stores an encoded result, for a transaction of this backend's store.

        Parameters:
            message_key: as `build_message_key` has it.
            data: the encoded result.
            ttl: milliseconds from now until which it is there.
        """
        key, expires = message_key.encode(), storage.wall() + ttl / 1000

        def run(txn: Txn) -> None:
            self._space.put(txn, key, data, expires)
            self._space.announce(txn, key)

        return run
