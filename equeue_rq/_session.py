"""One client's connection: what a server would remember of it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from equeue_core import EQueueError, QueueClosed, Store
from equeue_core.storage import Place, Space, SpaceId, Sync, in_operation
from equeue_rq import _clients as clients
from equeue_rq import _mailboxes as mailboxes
from equeue_rq._clients import SHOWN_EVERY, Client, Message
from equeue_rq._mailboxes import Kind

if TYPE_CHECKING:
    from equeue_rq._commands._table import Command
    from equeue_rq._replies import Reply

R = TypeVar("R")

_getpid = os.getpid
_wall = time.time  # a reference of our own: applications patch time.time

_unburied: deque[Session] = deque()
"""Sessions that were closed where a store must not be (see `in_operation`)."""


class Disconnected(Exception):
    """The session has ended.

    Attributes:
        idle: nothing was under way: the client may well connect again.
    """

    def __init__(self, message: str, idle: bool = False) -> None:
        super().__init__(message)
        self.idle = idle


class Session:
    """The state of one connection to a store.

    A thread uses it at a time, except that one may read messages while another one subscribes, and that
    `close` may be called at any time, from anywhere. In a forked child the parent's session is nobody's.

    Parameters:
        path: the store's directory.
        sync, allow_network_fs: as for `equeue_core.Store`.

    Attributes:
        db: the number of the database in use.
        protocol: in which version of the protocol answers are given, 2 or 3.
        client: what others may know of it.
        patience: seconds that a blocking command may take at most; None: as long as it wants.
        watched: the stamps that keys had when they were watched, by database and name.
        queued: the commands since MULTI; None outside of a transaction.
        broken: a command since MULTI was refused, so EXEC will be.
        subscriptions: the channels and patterns it listens to, each kind in the order of subscribing.
        replies: answers, and messages that it has taken from its mailbox, that were not read yet.
        frugal: scripts have to ask for room whenever they add something.
    """

    pid = 0

    def __init__(
        self, path: str | os.PathLike[str], *, sync: Sync = None, allow_network_fs: bool = False
    ) -> None:
        self.store = Store(path, sync=sync, allow_network_fs=allow_network_fs)
        self.space = Space(self.store, SpaceId.RQ)
        self.pid = _getpid()
        self.client = Client(pid=self.pid)
        self.patience: float | None = None
        self.frugal = False
        self.subscriptions: dict[Kind, dict[bytes, None]] = {kind: {} for kind in Kind}
        self.replies: deque[Reply] = deque()
        self._under_way: list[str] = []
        self._place: Place | None = None
        self._calls = 0
        self._shown = 0.0
        self._closed = False
        self._open_still = [True]
        self.reset()

    def reset(self) -> None:
        """Be as new, but for the connection itself and its subscriptions."""
        self.db = 0
        self.protocol = 2
        self.watched: dict[tuple[int, bytes], int] = {}
        self.leave_transaction()

    def leave_transaction(self) -> None:
        """Forget what was queued."""
        self.queued: list[tuple[Command, list[bytes]]] | None = None
        self.broken = False

    # Who it is

    @property
    def id(self) -> int:
        """The connection's number, never used before and greater than earlier ones'."""
        if not self.client.id:
            self.open()
        return self.client.id

    @property
    def is_seated(self) -> bool:
        """Whether others can tell that this session is alive."""
        return self._place is not None

    @property
    def is_subscribed(self) -> bool:
        """Whether it listens to anything."""
        return any(self.subscriptions.values())

    def open(self) -> None:
        """Open the store now, and take a place among its clients.

        Raises:
            EQueueError: the store cannot be opened.
        """
        if _unburied:
            bury()
        client, roster = self.client, self.space.roster
        client.since = _wall()
        try:
            place = roster.take()
            last = Client.unpack(roster.record(place.number))
            client.id = clients.client_id(client.since, place.number, last.id if last else 0)
            self._calls = place.calls
            self._place = place
        except OSError:
            # Without room for the file, or for one more, nobody sees this client; all else works.
            client.id = clients.client_id(client.since, -1, 0)
        self.show()

    def show(self) -> None:
        """Let others see the client as it is now."""
        client = self.client
        client.db, client.protocol = self.db, self.protocol
        client.queued = -1 if self.queued is None else len(self.queued)
        client.watched = len(self.watched)
        client.subscribed = tuple(len(self.subscriptions[kind]) for kind in Kind)
        client.active = self._shown = _wall()
        if self._place is not None:
            try:
                self._place.write(client.pack())
            except OSError:
                self._place = None

    # Running commands

    def during(self, name: str, run: Callable[[], R]) -> R:
        """The result of `run`, which is what the client does now, under the name of a command.

        Raises:
            Disconnected: the session was closed, or killed, before or meanwhile.
        """
        try:
            self._begin(name)
            return run()
        except QueueClosed:
            raise Disconnected("the connection was closed") from None
        finally:
            self._end()

    def _begin(self, name: str) -> None:
        self._under_way.append(name)
        client = self.client
        if not client.id:
            self.open()
        self.listen()
        client.active, client.command = _wall(), name
        if not 0 <= client.active - self._shown < SHOWN_EVERY:
            self.show()

    def _end(self) -> None:
        if self._under_way:  # unless an exception from outside came before it was noted
            self._under_way.pop()
        if self._closed and not self._under_way:
            self._leave()
        if _unburied:
            bury()

    def is_called(self) -> bool:
        """Whether there may be something for `listen`. It may be asked within operations."""
        return self._place is not None and self._place.calls != self._calls

    def listen(self) -> Message | None:
        """What another client wants of this one now.

        Raises:
            Disconnected: the session was closed, or killed.
        """
        if self._closed:
            raise Disconnected("the connection was closed")
        place = self._place
        if place is None or place.calls == self._calls:
            return None
        self._calls = place.calls
        message = clients.heard(self.client.id, place.called())
        if message is Message.END:
            self.close()
            raise Disconnected("Connection closed by server.", idle=not self.client.blocked)
        return message

    # The end

    @property
    def closed(self) -> bool:
        """Whether it has ended, or belongs to another process."""
        return self._closed or self.pid != _getpid()

    def close(self) -> None:
        """End it; may be called again, from any thread or destructor. Who waits gets an error."""
        if self.pid != _getpid() or self._closed:
            return
        self._closed = True
        self.space.close()
        if not self._under_way:  # otherwise the thread that runs the command does it
            self._leave()

    def _leave(self) -> None:
        if in_operation():
            _unburied.append(self)
            return
        try:
            self._open_still.pop()
        except IndexError:
            return
        try:
            if self.is_subscribed:
                # Another handle: this session's is closed.
                with Space(self.store, SpaceId.RQ) as space:
                    space.write(lambda txn: mailboxes.forget(txn, self.client.id))
        except EQueueError:
            pass  # others clear away what belongs to nobody
        if self._place is not None:
            self._place.give_back()
        self.store.close()

    def __del__(self) -> None:
        self.close()


def bury() -> None:
    """Do what is left to be done for sessions that were closed in the midst of something else."""
    while _unburied and not in_operation():
        try:
            session = _unburied.popleft()
        except IndexError:
            return
        session._leave()
