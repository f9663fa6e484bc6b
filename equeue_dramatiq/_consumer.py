"""What Dramatiq's consumer threads draw messages from."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from dramatiq import Message
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.errors import DecodeError
from dramatiq.logging import get_logger

from equeue_core import ClaimLost, EQueueError, Queue, QueueEmpty, Record, Store
from equeue_dramatiq._errors import broker_error
from equeue_dramatiq._message import GONE, LMDBMessage

if TYPE_CHECKING:
    from equeue_dramatiq._slots import Slots
    from equeue_dramatiq.broker import LMDBBroker

_NO_TURNS = nullcontext()


class LMDBConsumer(Consumer):
    """Claims messages of one queue, no more than there are slots.

    Parameters:
        broker: whose signals are emitted.
        queue_name: Dramatiq's name of the queue.
        queue: the core's queue.
        slots: how many messages may be in hand.
        timeout: milliseconds to wait for a message.
    """

    def __init__(
        self,
        broker: LMDBBroker,
        queue_name: str,
        queue: Queue[bytes],
        slots: Slots,
        timeout: int,
    ) -> None:
        self.logger = get_logger(__name__, type(self))
        self.broker = broker
        self.queue_name = queue_name
        self.timeout = timeout
        self._queue = queue
        self._slots = slots
        self._ends_in: AbstractContextManager[None] = slots.turns
        self._claimed: deque[Record[bytes]] = deque()

    def __next__(self) -> MessageProxy | None:
        try:
            if not self._claimed:
                self._claim()
            while self._claimed:
                message = self._next_claimed()
                if message is not None:
                    return message
        except EQueueError as error:
            raise broker_error(error) from error
        return None

    def _next_claimed(self) -> LMDBMessage | None:
        message = None
        try:
            message = self._open(self._claimed.popleft())
        finally:
            if message is None:
                self._slots.give_back(1)
        return message

    def _claim(self) -> None:
        room, patience = self._slots.wait(self.timeout / 1000)
        if not room:
            return
        try:
            records = self._queue.get_many(room, patience)
        except QueueEmpty:
            return
        # Where ends are flushed to the disk, threads share the flush: they must not wait for each other.
        self._ends_in = self._slots.turns if self._queue.store.sync == "off" else _NO_TURNS
        if self._slots.take(len(records)):
            self._claimed.extend(records)
        else:  # the worker began to stop meanwhile
            give_back(self._queue.store, records)

    def _open(self, record: Record[bytes]) -> LMDBMessage | None:
        """The claimed message; None if it cannot be decoded: then it is a dead letter."""
        try:
            message = _decode(record.payload)
        except DecodeError as error:
            self.logger.exception(
                "A message of %r cannot be decoded: dead letter.", self.queue_name
            )
            record.fail(error.__cause__ or error)
            return None
        was_delayed = isinstance(message.options.get("eta"), (int, float))
        if was_delayed:
            del message.options["eta"]
        if message.queue_name != self.queue_name:
            message = message.copy(queue_name=self.queue_name)
        proxy = LMDBMessage(message, record, self._queue.store, self._slots, self._ends_in)
        if was_delayed:
            self.broker.emit_before("delay_message", proxy)
        return proxy

    def ack(self, message: MessageProxy) -> None:
        """Remove the message, and commit what was held back for this moment.

        Raises:
            BrokerConnectionError: nothing was written; the message is still in hand.
        """
        self._end(message, LMDBMessage.ack)

    def nack(self, message: MessageProxy) -> None:
        """Make the message a dead letter. Errors as for `ack`."""
        self._end(message, LMDBMessage.reject)

    def _end(self, message: MessageProxy, end: Callable[[LMDBMessage], None]) -> None:
        if not isinstance(message, LMDBMessage):
            self.logger.warning(
                "Message %r was not claimed here: nothing to do.", message.message_id
            )
            return
        try:
            end(message)
            if message.unfinished:
                self.logger.warning(
                    "The end of message %r was interrupted: it runs again.", message.message_id
                )
        except GONE as error:
            self.logger.warning("Message %r is not in hand any more: %s", message.message_id, error)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give messages that were not started back to their places.

        Raises:
            BrokerConnectionError: nothing was written.
        """
        unstarted = [message for message in messages if isinstance(message, LMDBMessage)]
        try:
            give_back(self._queue.store, [message.record for message in unstarted])
        except EQueueError as error:
            raise broker_error(error) from error
        for message in unstarted:
            message.leave(ended=False)

    def close(self) -> None:
        """Give back what was claimed and not yet handed out.

        Raises:
            BrokerConnectionError: nothing was written.
        """
        claimed = list(self._claimed)
        self._claimed.clear()
        self._slots.give_back(len(claimed))
        try:
            give_back(self._queue.store, claimed)
        except EQueueError as error:
            raise broker_error(error) from error


class DelayConsumer(Consumer):
    """The consumer of a delay queue: it has nothing to do.

    Delayed messages are in the plain queue, as scheduled jobs. But Dramatiq's workers know of delay
    queues, and so does middleware: they are declared, and consumed by this.
    """

    def __init__(self, timeout: int) -> None:
        self._seconds = timeout / 1000
        self._closed = threading.Event()

    def __next__(self) -> MessageProxy | None:
        self._closed.wait(self._seconds)
        return None

    def close(self) -> None:
        """End the current wait."""
        self._closed.set()


def _decode(payload: bytes) -> Message[Any]:
    """The message.

    Raises:
        DecodeError: it is none, or one that a worker would stumble over, each time it is delivered.
    """
    message: Message[Any] = Message.decode(payload)
    if not isinstance(message.actor_name, str) or not isinstance(message.options, dict):
        raise DecodeError("the actor's name is no text, or the options are no dict", payload, None)
    return message


def give_back(store: Store, records: list[Record[bytes]]) -> None:
    """Release all of them in one commit; those that are not held any more are left alone.

    Raises:
        EQueueError: nothing was written.
    """
    try:
        with store.transaction() as transaction:
            for record in records:
                transaction.release(record)
    except ClaimLost:
        for record in records:
            try:
                record.release()
            except ClaimLost:
                continue
