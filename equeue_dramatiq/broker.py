"""The broker: Dramatiq's queues as queues of an equeue store."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from dramatiq import Broker, Message, Middleware
from dramatiq.common import current_millis, dq_name, q_name
from dramatiq.composition import group, pipeline
from dramatiq.errors import DecodeError, QueueJoinTimeout

from equeue_core import (
    EQueueError,
    JobNotFound,
    JobStateError,
    JoinTimeout,
    Queue,
    State,
    Store,
)
from equeue_core.queues import all_jobs
from equeue_dramatiq._consumer import DelayConsumer, LMDBConsumer
from equeue_dramatiq._errors import broker_error, broker_errors
from equeue_dramatiq._handles import open_store, whole
from equeue_dramatiq._message import LMDBMessage, commit_held, ending_message
from equeue_dramatiq._middleware import Audience
from equeue_dramatiq._puts import Batch, Put, due, rank, run_together
from equeue_dramatiq._workers import Workers

if TYPE_CHECKING:
    from dramatiq.broker import Consumer

    from equeue_core.storage import Sync

DEFAULT_DEAD_MESSAGE_TTL = 86_400_000 * 7
"""Milliseconds that dead letters are kept."""

DEFAULT_DELIVERY_LIMIT = 20
"""Deliveries that a message may cost its worker process: as many as Dramatiq retries an actor."""

_PAGE = 1000
"""Jobs that are looked at in one transaction."""


class _Bytes:
    """The codec of messages, which Dramatiq encodes itself."""

    encode = staticmethod(bytes)
    decode = staticmethod(bytes)


class LMDBBroker(Broker):
    """A Dramatiq broker that needs no server: a directory.

    Making one touches no disk; the first operation opens the store. Every process opens its own, also
    a child of a fork. Delayed messages wait in the store, priorities order a queue over all processes,
    and the messages of a worker that died run elsewhere within milliseconds.

    Parameters:
        path: the store's directory (made if missing), or an `equeue_core.Store`; ``./data`` if neither
            this nor `store` is given.
        store: a store, as a keyword.
        middleware: as for every Dramatiq broker; None means Dramatiq's defaults.
        namespace: the first part of the queues' names in the store: Dramatiq's queue ``default`` is
            the core's queue ``dramatiq:default``.
        dead_message_ttl: milliseconds that dead letters are kept; None: until they are purged.
        done_message_ttl: milliseconds for which processed messages can be looked up; 0: not at all.
        delivery_limit: how many processes a message may cost their lives, or be taken from, before it
            becomes a dead letter; actors that raise are none of its business.
        sync: ``"full"``, ``"normal"`` or ``"off"``, see `equeue_core.Queue`; None: the store's own.
        map_size: bytes of data in the store at which `enqueue` fails; None: no limit but the disk's.
        allow_network_fs: open a store on a network file system all the same.

    Raises:
        ValueError, TypeError: an option cannot be meant.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Store | None = None,
        *,
        store: Store | None = None,
        middleware: list[Middleware] | None = None,
        namespace: str = "dramatiq",
        dead_message_ttl: int | None = DEFAULT_DEAD_MESSAGE_TTL,
        done_message_ttl: int = 0,
        delivery_limit: int = DEFAULT_DELIVERY_LIMIT,
        sync: Sync = None,
        map_size: int | None = None,
        allow_network_fs: bool = False,
    ) -> None:
        self._open = partial(
            open_store,
            path,
            store,
            sync=sync,
            map_size=map_size,
            allow_network_fs=allow_network_fs,
        )
        self._owns_store = store is None and not isinstance(path, Store)
        self._store: Store | None = self._open()
        self._queue_options: dict[str, Any] = {
            "codec": _Bytes,
            "max_retries": whole("delivery_limit", delivery_limit, "deliveries"),
            "keep_done": done_message_ttl != 0,
            "vacuum_interval": whole("done_message_ttl", done_message_ttl, "milliseconds") / 1000
            or 1.0,
        }
        if dead_message_ttl is not None:
            kept = whole("dead_message_ttl", dead_message_ttl, "milliseconds")
            self._queue_options["keep_failed"] = kept / 1000
        self._handles: dict[str, Queue[bytes]] = {}
        self._workers = Workers()
        self._batch = Batch()
        self._audience = Audience()
        self.namespace = namespace
        self.dead_message_ttl = dead_message_ttl
        self.done_message_ttl = done_message_ttl
        self.delivery_limit = delivery_limit
        super().__init__(middleware=middleware)
        self.queues: set[str] = set()

    @property
    def store(self) -> Store:
        """The store."""
        if self._store is None:  # it was closed
            self._store = self._open()
        return self._store

    def queue(self, queue_name: str) -> Queue[bytes]:
        """The core's queue behind Dramatiq's `queue_name`: to list, requeue or purge dead letters
        (its FAILED jobs), and to look at what waits. Payloads are encoded messages.
        """
        name = q_name(queue_name)
        handle = self._handles.get(name)
        if handle is None:
            made: Queue[bytes] = Queue(
                self.store, f"{self.namespace}:{name}", **self._queue_options
            )
            handle = self._handles.setdefault(name, made)
        return handle

    # Declaring

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue and its delay queue; nothing happens if it was declared before."""
        name = q_name(queue_name)
        if name in self.queues:
            return
        self.emit_before("declare_queue", name)
        self.queues.add(name)
        self.emit_after("declare_queue", name)

        delay_queue = dq_name(name)
        self.delay_queues.add(delay_queue)
        self.emit_after("declare_delay_queue", delay_queue)

    def get_declared_queues(self) -> set[str]:
        """The names of all declared queues, without the delay queues."""
        return self.queues.copy()

    # Enqueueing

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Add a message.

        While Dramatiq's middleware ends a message (retries it, continues its pipeline, calls back),
        the put is held back and committed together with the ack.

        Parameters:
            message: the message; its option ``broker_priority`` (0 to 255, greater first) ranks above
                the actor's ``priority`` (smaller first).
            delay: milliseconds before it may run; any number.

        Returns:
            The message as it was stored: with a delay, a copy with the option ``eta``.

        Raises:
            ConnectionFailed, ConnectionClosed: the store cannot be opened, is full or was removed; the
                message was not added.
            ValueError: the delay or the priority cannot be meant.
        """
        put = self._announced(message, delay)
        self._put(put)
        return put.message

    def _announced(self, message: Message[Any], delay: int | None) -> Put:
        """The put of a message, after the signal that tells of it."""
        name = q_name(message.queue_name)
        if delay is not None:
            options = {"eta": current_millis() + delay}
            message = message.copy(queue_name=dq_name(name), options=options)
        priority = rank(message, self.actors.get(message.actor_name))
        self.emit_before("enqueue", message, delay)
        return Put(
            message,
            self.queue(name),
            message.encode(),  # after the signal: middleware may have added to the options
            priority,
            due(message),
            partial(self.emit_after, "enqueue", message, delay),
        )

    def _put(self, put: Put) -> None:
        if self._batch.puts is not None:
            self._batch.puts.append(put)
        elif not self._hold([put]):
            try:
                put.run()
            except EQueueError as error:
                raise broker_error(error) from error

    def _hold(self, puts: list[Put]) -> bool:
        """Hold them back until a message has ended, if this thread is about to end one; whether it is."""
        ending = ending_message()
        if ending is None or ending.store is not self.store:
            return False
        for put in puts:
            ending.hold(put.add_to, put.announce)
        return True

    def enqueue_many(
        self, messages: Iterable[Message[Any] | pipeline | group], *, delay: int | None = None
    ) -> list[Message[Any]]:
        """Add many messages in one commit: all or none. Of a pipeline the first message is added, of
        a group all of them.

        Parameters:
            messages: messages, pipelines and groups.
            delay: milliseconds before they may run.

        Returns:
            The messages as they were stored, in order.

        Raises:
            ConnectionFailed, ConnectionClosed, ValueError: as `enqueue`; then none was added.
        """
        outer = self._batch.puts
        puts: list[Put] = []
        self._batch.puts = puts
        try:
            for item in messages:
                if isinstance(item, (group, pipeline)):
                    item.run(delay=delay)  # type: ignore[no-untyped-call]
                else:
                    self.enqueue(item, delay=delay)
        finally:
            self._batch.puts = outer
        if not self._hold(puts):
            with broker_errors():
                run_together(self.store, puts)
        return [put.message for put in puts]

    # Consuming

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """A consumer of a queue.

        Parameters:
            queue_name: the queue.
            prefetch: how many messages may be in hand. Within a worker it is as many as the worker
                has threads, for all queues together, unless ``dramatiq_queue_prefetch`` or the
                worker's attribute ``queue_prefetch`` is set.
            timeout: milliseconds to wait for a message.
        """
        if queue_name != q_name(queue_name):
            return DelayConsumer(timeout)
        slots = self._workers.slots(prefetch)
        queue = self.queue(queue_name)
        return LMDBConsumer(self, queue_name, queue, slots, timeout)

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Emit a signal; what concerns workers is noted here."""
        if signal == "worker_boot":
            self._workers.add(*args)
        elif signal == "process_message" and isinstance(args[0], LMDBMessage):
            args[0].unfinished = True
        super().emit_before(signal, *args, **kwargs)
        if signal == "worker_shutdown":
            # Others can have what this worker has not started; it may go on with the rest for minutes.
            self._workers.stop(*args)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Emit a signal; what the middleware puts and stores while it ends a message is held back."""
        ending = None
        if signal in ("process_message", "skip_message"):
            if isinstance(args[0], LMDBMessage):
                ending = args[0]
                ending.begin_end(with_result=not self._audience.listens(self.middleware))
        elif signal == "consumer_thread_boot":
            self._workers.enter(*args)
        super().emit_after(signal, *args, **kwargs)
        if ending is not None:
            ending.unfinished = False

    # Looking and managing

    def stats(self, queue_name: str) -> dict[str, int]:
        """Messages of a queue by state, as `equeue_core.Queue.stats` counts them: those in hand are
        ``running``, dead letters ``failed``; ``total`` is how many were ever put.
        """
        with broker_errors():
            commit_held()
            return self.queue(queue_name).stats()

    def get_queue_message_counts(self, queue_name: str) -> tuple[int, int, int]:
        """How many messages are ready, delayed, and dead; those in hand are not counted."""
        counts = self.stats(queue_name)
        return counts["pending"], counts["scheduled"], counts["failed"]

    def cancel(self, message_id: str, queue_name: str | None = None) -> bool:
        """Keep a message that is ready or delayed from running.

        It is looked for among all that wait, so this takes the longer the more there are.

        Parameters:
            message_id: the message's id.
            queue_name: the queue that it is in; None: any of the declared ones.

        Returns:
            Whether it was found and will not run.

        Raises:
            TypeError: `message_id` is no text; a message, say.
        """
        if not isinstance(message_id, str):
            raise TypeError(f"a message's id is a str, not {type(message_id).__name__}")
        names = self.queues if queue_name is None else [queue_name]
        with broker_errors():
            commit_held()
            return any(self._cancel(self.queue(name), message_id) for name in names)

    def _cancel(self, queue: Queue[bytes], message_id: str) -> bool:
        cancelled = False
        # In this order: a message that becomes due meanwhile is met as a ready one.
        for state in (State.SCHEDULED, State.PENDING):
            for job in all_jobs(queue, state, _PAGE):
                try:
                    if Message.decode(job.payload).message_id == message_id:
                        queue.cancel(job.job_id)
                        cancelled = True
                except (DecodeError, JobNotFound, JobStateError):
                    continue  # none that could be cancelled (any more)
        return cancelled

    def flush(self, queue_name: str) -> None:
        """Drop all messages of a queue that are not in hand, dead letters included."""
        with broker_errors():
            commit_held()
            for state in State:
                if state is not State.RUNNING:
                    self.queue(queue_name).purge(state)

    def flush_all(self) -> None:
        """`flush` every declared queue."""
        for queue_name in self.get_declared_queues():
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until no message of the queue is ready, delayed or in hand.

        Parameters:
            queue_name: the queue.
            timeout: milliseconds to wait at most; None: for ever.

        Raises:
            QueueJoinTimeout: that took longer.
        """
        with broker_errors():
            commit_held()
            try:
                self.queue(queue_name).join(None if timeout is None else timeout / 1000)
            except JoinTimeout as error:
                raise QueueJoinTimeout(q_name(queue_name)) from error

    def close(self) -> None:
        """Close this process's handles; a later use opens the store again.

        Nothing is closed while a worker has a message in hand: one that was told to stop may not have
        ended in time, and its threads work on until the process ends. So long their messages are theirs.
        """
        if self._workers.are_busy():
            return
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            handle.close()
        if self._owns_store and self._store is not None:
            store, self._store = self._store, None
            store.close()
