"""Jobs for the coroutines that wait for one: a single waiter for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic

from equeue_core._gather import Gatherer, after, loop_event
from equeue_core._typing import T
from equeue_core.errors import ClaimLost, QueueEmpty

if TYPE_CHECKING:
    from equeue_core._queue import Queue
    from equeue_core._record import Record
    from equeue_core._store._waiter import Waiter


class Feeder(Generic[T]):
    """Claims for the waiting ``get`` calls of one queue, in the order in which they came."""

    def __init__(self, queue: Queue[T], gatherer: Gatherer) -> None:
        self._queue = queue
        self._gatherer = gatherer
        self._hungry: deque[tuple[int, asyncio.Future[list[Record[T]]]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._waiter: Waiter | None = None
        self._work: asyncio.Future[Any] | None = None

    async def get(self, limit: int, timeout: float | None) -> list[Record[T]]:
        """Up to `limit` records; see ``Queue.get_many``."""
        await self._gatherer.ready()
        if not self._is_fed():
            records, _ = await self._claim(limit)
            if records:
                return records
        if timeout == 0:
            raise QueueEmpty("the queue has no job that can be claimed now")
        future: asyncio.Future[list[Record[T]]] = asyncio.get_running_loop().create_future()
        self._hungry.append((limit, future))
        if self._is_fed():
            self.wake()
        else:
            self._task = asyncio.create_task(self._feed())
        try:
            await asyncio.wait([future], timeout=timeout)
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.put_back(future.result())
            future.cancel()
            raise
        if not future.done():
            future.cancel()
            raise QueueEmpty(f"no job came within {timeout} seconds")
        return future.result()

    def wake(self) -> None:
        """Have the feeder look at once: somebody joined, or the queue was closed."""
        if self._waiter is not None:
            self._waiter.kick()

    def put_back(self, records: list[Record[T]]) -> None:
        """Give records back to their places without waiting for it."""
        for record in records:
            work = self._gatherer.submit(record._release_operation(None))
            work.add_done_callback(partial(_note_given_back, record))

    def _is_fed(self) -> bool:
        task = self._task
        if task is None or task.done():
            return False
        return task.get_loop() is asyncio.get_running_loop()

    async def _claim(
        self, limit: int, waiter: Waiter | None = None
    ) -> tuple[list[Record[T]], float]:
        """Try once: in the loop if that cannot take long, else in the loop's executor."""
        consumer = self._queue._consumer
        if self._queue._environment.sync == "off" and consumer.is_enlisted():
            try:
                return consumer.try_claim(limit, waiter, patient=False)
            except BlockingIOError:
                pass  # another process or thread has the lock: the loop does not wait for it
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, consumer.try_claim, limit, waiter)
        if waiter is not None:
            self._work = work
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self._put_back_claimed)
            raise

    def _put_back_claimed(self, work: asyncio.Future[tuple[list[Record[T]], float]]) -> None:
        if not work.cancelled() and work.exception() is None:
            self.put_back(work.result()[0])

    async def _feed(self) -> None:
        """Claim and serve until nobody is hungry."""
        waiter = None
        try:
            waiter = self._waiter = self._queue._consumer.waiter()
            self._queue._waiters.add(waiter)
            while self._wanted():
                records, wait = await self._claim(self._wanted(), waiter)
                self._serve(records)
                if not records:
                    await loop_event(waiter, wait)
        except Exception as error:  # noqa: BLE001 - handed to those who wait
            while self._hungry:
                _, future = self._hungry.popleft()
                if not future.done():
                    future.set_exception(error)
        finally:
            # From here on a newcomer starts a feeder of its own.
            work, self._task, self._waiter, self._work = self._work, None, None, None
            if waiter is not None:
                after(work, partial(self._dismiss, waiter))

    def _wanted(self) -> int:
        """How many jobs the hungry take; those that gave up are forgotten."""
        self._hungry = deque(each for each in self._hungry if not each[1].done())
        return sum(limit for limit, _ in self._hungry)

    def _serve(self, records: list[Record[T]]) -> None:
        while records and self._wanted():
            limit, future = self._hungry.popleft()
            future.set_result(records[:limit])
            records = records[limit:]
        self.put_back(records)

    def _dismiss(self, waiter: Waiter) -> None:
        self._queue._waiters.discard(waiter)

        def close(done: asyncio.Future[None]) -> None:
            done.exception()  # closed meanwhile: nobody counts any more
            waiter.close()

        self._gatherer.submit(lambda txn: waiter.leave()).add_done_callback(close)


def _note_given_back(record: Record[T], work: asyncio.Future[Any]) -> None:
    """If it was not (the loop has ended, the disk is full), it stays unfinished, and is given back as it
    is dropped.
    """
    if not work.cancelled() and isinstance(work.exception(), (NoneType, ClaimLost)):
        record._held = False
