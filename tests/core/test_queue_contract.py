"""The queue's contract, for each way to get hold of a queue."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from equeue_core import AsyncQueue, Queue, Store
from equeue_core._aio import AsyncRecord
from tests.contract import QueueContract


class ByPath:
    """`Queue(path, name)`, at the default durability."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Queue] = []

    def open(self, name: str = "default", **options: Any) -> Any:
        queue: Queue = Queue(self._path, name, **options)
        self._open.append(queue)
        return queue

    def reopen(self) -> None:
        for queue in self._open:
            queue.close()
        self._open.clear()


class ByStore:
    """`store.queue(name)`, in one sync mode."""

    def __init__(self, path: Path, sync: str) -> None:
        self._path, self._sync = path, sync
        self._store = Store(path, sync=sync)

    def open(self, name: str = "default", **options: Any) -> Any:
        return self._store.queue(name, **options)

    def reopen(self) -> None:
        self._store.close()
        self._store = Store(self._path, sync=self._sync)


class Waited:
    """A coroutine API, used as an ordinary one: each call runs the loop until it is done."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target, self._loop = target, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(_awaited(result))
            if isinstance(result, list):
                return [self._wrapped(each) for each in result]
            return self._wrapped(result)

        return call

    def _wrapped(self, value: Any) -> Any:
        return Waited(value, self._loop) if isinstance(value, AsyncRecord) else value

    @property
    def paused(self) -> Any:
        return self._loop.run_until_complete(self._target.paused())

    @contextlib.contextmanager
    def processing(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        manager = self._target.processing(*args, **kwargs)
        record = self._loop.run_until_complete(manager.__aenter__())
        try:
            yield self._wrapped(record)
        except BaseException as error:
            leave = manager.__aexit__(type(error), error, error.__traceback__)
            if not self._loop.run_until_complete(leave):
                raise
        else:
            self._loop.run_until_complete(manager.__aexit__(None, None, None))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


class Async:
    """`AsyncQueue(path, name)`."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._path, self._loop = path, loop
        self._open: list[Waited] = []

    def open(self, name: str = "default", **options: Any) -> Any:
        queue = Waited(AsyncQueue(self._path, name, sync="off", **options), self._loop)
        self._open.append(queue)
        return queue

    def reopen(self) -> None:
        for queue in self._open:
            queue.close()
        self._open.clear()


class TestQueueByPath(QueueContract):
    @pytest.fixture
    def backend(self, path: Path) -> Iterator[ByPath]:
        backend = ByPath(path)
        yield backend
        backend.reopen()


class TestQueueOfAStore(QueueContract):
    @pytest.fixture(params=["normal", "off"])
    def backend(self, path: Path, request: pytest.FixtureRequest) -> Iterator[ByStore]:
        backend = ByStore(path, request.param)
        yield backend
        backend.reopen()


class TestAsyncQueue(QueueContract):
    @pytest.fixture
    def backend(self, path: Path) -> Iterator[Async]:
        loop = asyncio.new_event_loop()
        backend = Async(path, loop)
        yield backend
        backend.reopen()
        loop.close()
