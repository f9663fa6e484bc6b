"""The queue for asyncio: the same verbs as coroutines, without a thread for each waiter.

Writes of one turn of the loop are gathered and applied in one commit: in the loop itself when the
store does not flush and its lock is free (a few microseconds), otherwise in the loop's executor. All
waiting ``get`` calls of a queue share one waiter, whose descriptor the event loop watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from equeue_core import _clock, _watch
from equeue_core import _config as config
from equeue_core import _ledger as books
from equeue_core._codec import checked_encode
from equeue_core._feeder import Feeder
from equeue_core._gather import Gatherer, after, loop_event
from equeue_core._job import Job, State
from equeue_core._queue import Queue
from equeue_core._record import Record
from equeue_core._retry import Backoff
from equeue_core._typing import Self, T
from equeue_core.errors import ClaimLost, JoinTimeout, QueueClosed, QueueFull, ResultTimeout

if TYPE_CHECKING:
    from equeue_core._codec import Codec
    from equeue_core._store_handle import Store, Sync

R = TypeVar("R")


class AsyncRecord(Generic[T]):
    """A claimed job, as ``AsyncQueue.get`` returns it; `Record` with coroutines for verbs.

    Attributes:
        payload, job_id, attempt, retries, enqueued_at, priority, queue: as in `Record`.
    """

    __slots__ = ("_owner", "_record")

    def __init__(self, owner: AsyncQueue[T], record: Record[T]) -> None:
        self._owner = owner
        self._record = record

    @property
    def payload(self) -> T:
        """What was put, decoded."""
        return self._record.payload

    @property
    def job_id(self) -> int:
        """The job's number in its queue."""
        return self._record.job_id

    @property
    def attempt(self) -> int:
        """Number of this delivery, 1 for the first."""
        return self._record.attempt

    @property
    def retries(self) -> int:
        """How many deliveries before this one were nacked, crashed or ran out of their lease."""
        return self._record.retries

    @property
    def enqueued_at(self) -> float:
        """When the job was put, in epoch seconds."""
        return self._record.enqueued_at

    @property
    def priority(self) -> float:
        """The job's priority; smaller runs first."""
        return self._record.priority

    @property
    def queue(self) -> str:
        """Name of the queue that the job is in."""
        return self._record.queue

    async def ack(self, result: Any = None) -> None:
        """See `Record.ack`."""
        await self._complete(self._record._ack_operation(result))

    async def nack(
        self, error: str | BaseException | None = None, delay: float | None = None
    ) -> None:
        """See `Record.nack`."""
        await self._complete(self._record._nack_operation(error, delay))

    async def fail(self, error: str | BaseException | None = None) -> None:
        """See `Record.fail`."""
        await self._complete(self._record._fail_operation(error))

    async def release(self, delay: float | None = None) -> None:
        """See `Record.release`."""
        await self._complete(self._record._release_operation(delay))

    async def extend(self, seconds: float) -> None:
        """See `Record.extend`."""
        await self._owner._submit(self._record._extend_operation(seconds))

    async def _complete(self, operation: partial[None]) -> None:
        await self._owner._submit(operation)
        self._record._held = False

    def __repr__(self) -> str:
        return f"<Async{repr(self._record)[1:]}"


class AsyncQueue(Generic[T]):
    """A `Queue` for asyncio. Parameters, verbs and errors are the same; the verbs are coroutines.

    A ``get`` that is cancelled loses no job: what it had claimed goes back to its place. A ``put``
    that is cancelled before its commit is not put. Use it from one event loop at a time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Store,
        name: str = "default",
        *,
        lease_time: float | None = None,
        max_retries: int = 3,
        backoff: float | Backoff | None = None,
        map_size: int | None = None,
        sync: Sync = None,
        do_recover: bool = True,
        recover_interval: float = 0.05,
        do_vacuum: bool = True,
        vacuum_interval: float = 300.0,
        keep_done: bool = True,
        keep_failed: float | None = None,
        codec: Codec | None = None,
        allow_network_fs: bool = False,
    ) -> None:
        self._queue: Queue[T] = Queue(
            path,
            name,
            lease_time=lease_time,
            max_retries=max_retries,
            backoff=backoff,
            map_size=map_size,
            sync=sync,
            do_recover=do_recover,
            recover_interval=recover_interval,
            do_vacuum=do_vacuum,
            vacuum_interval=vacuum_interval,
            keep_done=keep_done,
            keep_failed=keep_failed,
            codec=codec,
            allow_network_fs=allow_network_fs,
        )
        self._gatherer = Gatherer(self._queue)
        self._feeder: Feeder[T] = Feeder(self._queue, self._gatherer)

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._queue.name

    @property
    def store(self) -> Store:
        """The store that the queue is in."""
        return self._queue.store

    @property
    def path(self) -> str:
        """The store's directory, as it was given."""
        return self._queue.path

    async def _submit(self, operation: Callable[..., R], adds: int = 0) -> R:
        result: R = await self._gatherer.submit(operation, adds)
        return result

    async def put(
        self,
        payload: T,
        *,
        priority: float = 0,
        delay: float | None = None,
        run_at: datetime | float | None = None,
        expires_in: float | None = None,
        unique: str | None = None,
        max_retries: int | None = None,
    ) -> int:
        """See `Queue.put`."""
        queue = self._queue
        raw = checked_encode(queue._options.codec, payload)
        spec = queue._spec(priority, delay, run_at, expires_in, unique, max_retries)
        return (await self._put_encoded([raw], spec))[0]

    async def put_nowait(self, payload: T, **options: Any) -> int:
        """`put` by another name; no put waits for room."""
        return await self.put(payload, **options)

    async def put_many(
        self,
        payloads: Iterable[T],
        *,
        priority: float = 0,
        delay: float | None = None,
        run_at: datetime | float | None = None,
        expires_in: float | None = None,
        max_retries: int | None = None,
    ) -> list[int]:
        """See `Queue.put_many`."""
        spec = self._queue._spec(priority, delay, run_at, expires_in, None, max_retries)
        encoded = self._queue._encode_all(payloads)
        return await self._put_encoded(encoded, spec) if encoded else []

    async def _put_encoded(self, payloads: list[bytes], spec: books.Spec) -> list[int]:
        await self._gatherer.ready()
        put, adds = self._queue._put_operation(payloads, spec)
        while True:
            try:
                return await self._submit(put, adds)
            except QueueFull:
                if not self._queue._may_make_room(adds) or not await self._submit(
                    self._queue._room_operation()
                ):
                    raise

    async def get(self, timeout: float | None = None) -> AsyncRecord[T]:
        """See `Queue.get`."""
        records = await self._feeder.get(1, config.timeout_seconds(timeout))
        return AsyncRecord(self, records[0])

    async def get_nowait(self) -> AsyncRecord[T]:
        """See `Queue.get_nowait`."""
        return await self.get(0)

    async def get_many(self, n: int, timeout: float | None = None) -> list[AsyncRecord[T]]:
        """See `Queue.get_many`."""
        records = await self._feeder.get(config.count("n", n), config.timeout_seconds(timeout))
        return [AsyncRecord(self, record) for record in records]

    @contextlib.asynccontextmanager
    async def processing(self, timeout: float | None = None) -> AsyncIterator[AsyncRecord[T]]:
        """See `Queue.processing`. Cancelled, the job is released."""
        record = await self.get(timeout)
        try:
            yield record
        except Exception as error:
            if record._record._held:
                with contextlib.suppress(ClaimLost):
                    await record.nack(error)
            raise
        except BaseException:
            if record._record._held:
                with contextlib.suppress(QueueClosed):
                    self._feeder.put_back([record._record])
            raise
        else:
            if record._record._held:
                await record.ack()

    async def ack_many(self, records: Iterable[AsyncRecord[T]]) -> None:
        """See `Queue.ack_many`."""
        batch = [record._record for record in records]
        await self._submit(self._queue._ack_many_operation(batch))
        for record in batch:
            record._held = False

    async def job(self, job_id: int) -> Job:
        """See `Queue.job`."""
        return await self._in_executor(self._queue.job, job_id)

    async def jobs(
        self, state: State | str | None = None, limit: int = 100, after: Job | None = None
    ) -> list[Job]:
        """See `Queue.jobs`."""
        return await self._in_executor(self._queue.jobs, state, limit, after)

    async def stats(self) -> dict[str, int]:
        """See `Queue.stats`."""
        return await self._in_executor(self._queue.stats)

    async def qsize(self) -> int:
        """See `Queue.qsize`."""
        return await self._in_executor(self._queue.qsize)

    async def empty(self) -> bool:
        """See `Queue.empty`."""
        return await self._in_executor(self._queue.empty)

    async def paused(self) -> bool:
        """See `Queue.paused`; a coroutine here."""
        return await self._in_executor(lambda: self._queue.paused)

    async def cancel(self, job_id: int) -> None:
        """See `Queue.cancel`."""
        await self._gatherer.ready()
        await self._submit(self._queue._cancel_operation(job_id))

    async def requeue(self, job_id: int) -> None:
        """See `Queue.requeue`."""
        await self._in_executor(self._queue.requeue, job_id)

    async def requeue_failed(self) -> int:
        """See `Queue.requeue_failed`."""
        return await self._in_executor(self._queue.requeue_failed)

    async def purge(self, state: State | str) -> int:
        """See `Queue.purge`."""
        return await self._in_executor(self._queue.purge, state)

    async def pause(self) -> None:
        """See `Queue.pause`."""
        await self._in_executor(self._queue.pause)

    async def resume(self) -> None:
        """See `Queue.resume`."""
        await self._in_executor(self._queue.resume)

    async def recover(self) -> int:
        """See `Queue.recover`."""
        return await self._in_executor(self._queue.recover)

    async def vacuum(self) -> int:
        """See `Queue.vacuum`."""
        return await self._in_executor(self._queue.vacuum)

    async def result(self, job_id: int, timeout: float | None = None) -> Any:
        """See `Queue.result`."""
        await self._gatherer.ready()
        look = _watch.ended(self._queue._ledger, job_id)
        found = await self._until(look, config.timeout_seconds(timeout))
        if found is None:
            raise ResultTimeout(f"job {job_id} has not ended within {timeout} seconds")
        return _watch.result_of(self._queue._describe(found))

    async def join(self, timeout: float | None = None) -> None:
        """See `Queue.join`."""
        await self._gatherer.ready()
        look = _watch.worked_off(self._queue._ledger)
        if await self._until(look, config.timeout_seconds(timeout)) is None:
            raise JoinTimeout(
                f"the queue {self.name!r} was not worked off within {timeout} seconds"
            )

    async def _until(self, look: _watch.Look, timeout: float | None) -> Any:
        """What `look` finds, as soon as it finds something; None when `timeout` seconds have
        passed.
        """
        queue = self._queue
        started = _clock.monotonic()
        waiter = queue._environment.bells.waiter(changes=(queue._ledger.id,))
        queue._waiters.add(waiter)
        work: asyncio.Future[Any] | None = None
        try:
            while True:
                work = self._gatherer.submit(partial(_watch.look_or_register, look, waiter))
                found = await asyncio.shield(work)
                if found is not None:
                    return found
                left = _watch.time_left(started, timeout)
                if left <= 0:
                    return None
                await loop_event(waiter, left)
                if queue._consumer.is_behind():
                    await self._in_executor(queue._consumer.keep_up)
        finally:
            queue._waiters.discard(waiter)
            after(work, waiter.close)

    @staticmethod
    async def _in_executor(call: Callable[..., R], *arguments: Any) -> R:
        return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)

    async def close(self) -> None:
        """See `Queue.close`."""
        self._queue._shut()
        self._feeder.wake()
        await self._in_executor(self._queue.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Async{repr(self._queue)[1:]}"
