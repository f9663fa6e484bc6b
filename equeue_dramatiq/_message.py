"""A message in hand, and what is to be committed together with its end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dramatiq import Message
from dramatiq.broker import MessageProxy

from equeue_core import (
    ClaimLost,
    EQueueError,
    QueueClosed,
    Record,
    Store,
    StoreRemoved,
    Transaction,
)
from equeue_dramatiq._errors import broker_error

if TYPE_CHECKING:
    from equeue_dramatiq._slots import Slots

GONE = (ClaimLost, QueueClosed, StoreRemoved)
"""Why a message is not in hand any more, and trying again is of no use: it is somebody else's, or the
store was closed or removed.
"""

Held = Callable[[Transaction], Any]
"""Adds an operation to the transaction that ends a message."""


class _Current(threading.local):
    message: LMDBMessage | None = None


_current = _Current()


class LMDBMessage(MessageProxy):
    """A message that this process has claimed.

    Attributes:
        record: the claim, a `equeue_core.Record`.
        store: the handle on the store that it is in.
        holds_result: whether its result is to be committed with its end.
        unfinished: whether its processing began and middleware was not told, to the last one, how it
            ended.
    """

    def __init__(
        self,
        message: Message[Any],
        record: Record[bytes],
        store: Store,
        slots: Slots,
        turns: AbstractContextManager[None],
    ) -> None:
        super().__init__(message)
        self.record = record
        self.redelivered = record.attempt > 1
        self.store = store
        self._slots: Slots | None = slots
        self._turns = turns
        self.holds_result = False
        self.unfinished = False
        self._held: list[Held] = []
        self._after: list[Callable[[], None]] = []

    def __lt__(self, other: object) -> bool:
        # Before Dramatiq 2.2, a worker's queue asks this of messages of actors of equal priority.
        if not isinstance(other, LMDBMessage):
            return NotImplemented
        one, two = self.record, other.record
        return (one.priority, one.job_id) < (two.priority, two.job_id)

    # What is enqueued and stored when the actor has run, by Dramatiq's middleware, is committed with the
    # message's ack or nack: a crash in between can neither lose it nor do it twice.

    def begin_end(self, with_result: bool) -> None:
        """From now on, this thread's puts belong to the end of this message; its result, too, if that
        can wait for it.
        """
        self.holds_result = with_result
        self.unfinished = True
        self._held.clear()
        self._after.clear()
        _current.message = self

    def hold(self, operation: Held, after: Callable[[], None] | None = None) -> None:
        """Have `operation` committed with the end, and `after` called then."""
        self._held.append(operation)
        if after is not None:
            self._after.append(after)

    def commit_held(self) -> None:
        """Commit what is held so far, without ending the message.

        Raises:
            EQueueError: nothing was written, all of it is still held.
        """
        if self._held:
            with self.store.transaction() as transaction:
                for operation in self._held:
                    operation(transaction)
            self._held.clear()
            self._run_after()

    def _run_after(self) -> None:
        calls, self._after = self._after, []
        for call in calls:
            call()

    # Its end

    def ack(self) -> None:
        """The message is done; or it runs again, if it is half told, as its retry may be missing.

        Raises:
            BrokerConnectionError: nothing was written; try again.
            ClaimLost, QueueClosed, StoreRemoved: it is not in hand any more.
        """
        if self.unfinished:
            # An exception from outside (a time limit, an abort) came in between: its retry may be missing.
            self._held.clear()
            self._after.clear()
            error = self._exception
            self._end(
                lambda: self.record.nack(error),
                lambda transaction: transaction.nack(self.record, error),
            )
        else:
            self._end(self.record.ack, lambda transaction: transaction.ack(self.record))

    def reject(self) -> None:
        """The message becomes a dead letter, with the error that it was given.

        Raises:
            BrokerConnectionError: nothing was written; try again.
            ClaimLost, QueueClosed, StoreRemoved: it is not in hand any more.
        """
        error = "rejected" if self._exception is None else self._exception
        self._end(
            lambda: self.record.fail(error),
            lambda transaction: transaction.fail(self.record, error),
        )

    def _end(self, alone: Callable[[], None], together: Held) -> None:
        _current.message = None
        try:
            with self._turns:
                if self._held:
                    self._held.append(together)
                    try:
                        self.commit_held()
                    finally:
                        del self._held[-1:]
                else:
                    alone()
        except GONE:
            self._held.clear()
            self.leave()
            raise
        except EQueueError as error:
            # It keeps its slot: the thread has it in hand, and will try again.
            raise broker_error(error) from error
        except Exception as error:
            # What is held cannot be written, now or later, but the thread goes on. A retry is spent: what
            # fails each time is a dead letter in the end, and keeps nobody busy for ever.
            self._held.clear()
            self._after.clear()
            with contextlib.suppress(EQueueError):
                self.record.nack(error)
            self.leave()
            raise
        except BaseException:
            # From outside, and it ends the thread. What it had in hand is for others, if it is not done.
            with contextlib.suppress(EQueueError):
                self.record.release()
            raise
        self.leave()

    def leave(self, ended: bool = True) -> None:
        """Free its slot; harmless if repeated."""
        slots, self._slots = self._slots, None
        if slots is None:
            return
        if ended:
            slots.end()
        else:
            slots.give_back(1)


def ending_message() -> LMDBMessage | None:
    """The message that this thread is about to end."""
    return _current.message


def commit_held() -> None:
    """Commit what this thread holds back, before it looks at the store or waits.

    Raises:
        EQueueError: nothing was written.
    """
    message = _current.message
    if message is not None:
        message.commit_held()
