"""Operations of one turn of an event loop, applied in one commit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from equeue_core._store._combine import Operation, Request
from equeue_core.errors import EQueueError

if TYPE_CHECKING:
    from equeue_core._queue import Queue
    from equeue_core._store._waiter import Waiter

NAP = 0.05
"""Seconds between two looks on an event loop that cannot watch a descriptor."""

_Pending = list[tuple[Request, "asyncio.Future[Any]"]]


class Gatherer:
    """Collects operations until the loop's next turn, or until the last commit has been flushed."""

    def __init__(self, queue: Queue[Any]) -> None:
        self._queue = queue
        self._pending: _Pending = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._busy = False

    async def ready(self) -> None:
        """Have the store open and the queue made; the first call may take a while, off the loop."""
        if self._queue._lazy_ledger is None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, lambda: self._queue._ledger)

    def submit(self, operation: Operation, adds: int = 0) -> asyncio.Future[Any]:
        """A future of the operation's result; cancelled before its commit, it is not applied."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # Another asyncio.run(): nobody can still be waiting for anything of the last one.
            self._loop, self._pending, self._busy = loop, [], False
        future: asyncio.Future[Any] = loop.create_future()
        self._pending.append((Request(operation, adds), future))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._start)
        return future

    def _start(self) -> None:
        batch = [each for each in self._pending if not each[1].cancelled()]
        self._pending = []
        if not batch:
            self._busy = False
            return
        try:
            environment = self._queue._environment
        except EQueueError as error:
            self._busy = False
            for request, _ in batch:
                request.error = error
            _settle(batch)
            return
        requests = [request for request, _ in batch]
        if environment.sync == "off":
            try:
                environment.run_requests(requests, patient=False)
            except BlockingIOError:
                pass  # another process or thread has the lock: the loop does not wait for it
            else:
                self._busy = False
                _settle(batch)
                return
        assert self._loop is not None
        work = self._loop.run_in_executor(None, environment.run_requests, requests)
        work.add_done_callback(lambda done: self._finish(batch, done))

    def _finish(self, batch: _Pending, done: asyncio.Future[None]) -> None:
        failure = None if done.cancelled() else done.exception()
        if failure is not None:
            for _, future in batch:
                if not future.done():
                    future.set_exception(failure)
        _settle(batch)
        self._start()


def _settle(batch: _Pending) -> None:
    for request, future in batch:
        if future.done():
            continue
        if request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.result)


async def loop_event(waiter: Waiter, timeout: float) -> None:
    """Wait in the event loop until the waiter rings, at most `timeout` seconds."""
    loop = asyncio.get_running_loop()
    rung = asyncio.Event()
    descriptor = waiter.fileno()
    try:
        loop.add_reader(descriptor, rung.set)
    except (NotImplementedError, ValueError):
        await asyncio.sleep(min(timeout, NAP))
        return
    timer = loop.call_later(timeout, rung.set)
    try:
        await rung.wait()
    finally:
        timer.cancel()
        loop.remove_reader(descriptor)
        waiter.wait(0)
