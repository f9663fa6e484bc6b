"""Operations of one turn of an event loop, applied in one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from equeue_core._store._combine import Operation, Request

if TYPE_CHECKING:
    from equeue_core._queue import Queue
    from equeue_core._store import Environment
    from equeue_core._store._waiter import Waiter

NAP = 0.05
"""Seconds between two looks on an event loop that cannot watch a descriptor."""

_PATIENCE = 0.1
"""Seconds after which a turn of the loop that was asked for, and did not come, is asked for again."""

_Pending = list[tuple[Request, "asyncio.Future[Any]"]]


class Gatherer:
    """Collects operations until the loop's next turn, or until the last commit has been flushed."""

    def __init__(self, queue: Queue[Any]) -> None:
        self._queue = queue
        self._pending: _Pending = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._planned_at: float | None = None
        self._flight: _Flight | None = None

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
            self._loop, self._pending = loop, []
            self._planned_at = self._flight = None
        future: asyncio.Future[Any] = loop.create_future()
        self._pending.append((Request(operation, adds), future))
        self._plan(loop)
        return future

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the pending operations applied in the loop's next turn, or after the commit under way.

        An interruption of the loop (Ctrl-C) can lose a callback. So a plan counts only for a while, and a
        commit under way is asked whether it has ended.
        """
        flight = self._flight
        if flight is not None:
            if not flight.landed:
                return
            self._flight = None
            flight.settle()
        now = loop.time()
        if self._planned_at is None or now - self._planned_at > _PATIENCE:
            self._planned_at = now
            loop.call_soon(self._start)

    def _start(self) -> None:
        self._planned_at = None
        batch = [each for each in self._pending if not each[1].cancelled()]
        self._pending = []
        if not batch:
            return
        try:
            self._apply(batch)
        except BaseException as error:
            _give_up(batch, error)
            if not isinstance(error, Exception):
                raise

    def _apply(self, batch: _Pending) -> None:
        environment = self._queue._environment
        requests = [request for request, _ in batch]
        if environment.sync == "off":
            try:
                environment.run_requests(requests, patient=False)
            except BlockingIOError:
                pass  # another process or thread has the lock: the loop does not wait for it
            else:
                _settle(batch)
                return
        assert self._loop is not None
        flight = _Flight(environment, batch)
        try:
            work = self._loop.run_in_executor(None, flight.fly)
        except RuntimeError:
            # The loop is about to end, its executor has: there is nobody to hold up.
            flight.fly()
            flight.settle()
            return
        self._flight = flight  # only once it flies: what is waited for must come
        work.add_done_callback(lambda done: self._land(flight))

    def _land(self, flight: _Flight) -> None:
        if self._flight is flight:
            self._flight = None
        try:
            flight.settle()
        finally:
            if self._pending and self._loop is not None:
                self._plan(self._loop)


class _Flight:
    """A batch that is committed in the executor."""

    def __init__(self, environment: Environment, batch: _Pending) -> None:
        self._environment = environment
        self._batch = batch
        self._error: BaseException | None = None
        self.landed = False

    def fly(self) -> None:
        """Commit, in the executor's thread."""
        try:
            self._environment.run_requests([request for request, _ in self._batch])
        except BaseException as error:  # noqa: BLE001 - handed to those who wait
            self._error = error
        self.landed = True

    def settle(self) -> None:
        """Tell those who wait, in the loop's thread; harmless if repeated."""
        if self._error is not None:
            _give_up(self._batch, self._error)
        _settle(self._batch)


def _give_up(batch: _Pending, error: BaseException) -> None:
    """Tell those who wait that it came to nothing; an interruption of the loop cancels their waiting."""
    for _, future in batch:
        if future.done():
            continue
        if isinstance(error, Exception):
            future.set_exception(error)
        else:
            future.cancel()


def _settle(batch: _Pending) -> None:
    for request, future in batch:
        if future.done():
            continue
        if request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.result)


def after(work: asyncio.Future[Any] | None, call: Callable[[], object]) -> None:
    """Call once the work is done, in whatever way: an executor's thread may use until then what is to be
    put away.
    """

    def run(done: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            done.exception()  # nobody waits for it any more
        call()

    if work is None or work.done():
        call()
    else:
        work.add_done_callback(run)


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
