"""Operations on any queues of a store, applied in one commit."""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from equeue_core._codec import checked_encode
from equeue_core._typing import Self
from equeue_core.errors import QueueFull, TransactionError

if TYPE_CHECKING:
    from equeue_core._aio import AsyncQueue, AsyncRecord
    from equeue_core._queue import Queue
    from equeue_core._record import Record
    from equeue_core._space import Space
    from equeue_core._store import Environment, Txn
    from equeue_core._store._combine import Operation
    from equeue_core._store_handle import Store


class PendingJob:
    """A job that a transaction will put.

    Attributes:
        job_id: its id, 0 until the transaction is committed.
    """

    __slots__ = ("job_id",)

    def __init__(self) -> None:
        self.job_id = 0


class Transaction:
    """Collects operations in a ``with store.transaction()`` block and applies them in one commit at
    its end.

    Nothing is applied when the block raises, or when one operation is refused (its error is raised
    at the end of the block). Until then nothing is locked: the block may take its time. In a
    coroutine, write ``async with``: the commit then runs in the loop's executor.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._operations: list[Operation] = []
        self._puts: list[PendingJob] = []
        self._put_in: set[Queue[Any]] = set()
        self._adds = 0
        self._completed: list[Record[Any]] = []
        self._state = "new"

    def put(
        self,
        queue: Queue[Any] | AsyncQueue[Any],
        payload: Any,
        *,
        priority: float = 0,
        delay: float | None = None,
        run_at: datetime | float | None = None,
        expires_in: float | None = None,
        unique: str | None = None,
        max_retries: int | None = None,
    ) -> PendingJob:
        """``queue.put(...)`` at the commit; options and errors as there."""
        plain = _plain_queue(queue)
        raw = checked_encode(plain._options.codec, payload)
        spec = plain._spec(priority, delay, run_at, expires_in, unique, max_retries)
        self._require_open()
        put, adds = plain._put_operation([raw], spec)
        pending = PendingJob()

        def run(txn: Txn) -> None:
            (pending.job_id,) = put(txn)

        self._add(plain, run, adds)
        self._puts.append(pending)
        self._put_in.add(plain)
        return pending

    def ack(self, record: Record[Any] | AsyncRecord[Any], result: Any = None) -> None:
        """``record.ack(result)`` at the commit."""
        self._complete(record, _plain_record(record)._ack_operation(result))

    def nack(
        self,
        record: Record[Any] | AsyncRecord[Any],
        error: str | BaseException | None = None,
        delay: float | None = None,
    ) -> None:
        """``record.nack(error, delay)`` at the commit."""
        self._complete(record, _plain_record(record)._nack_operation(error, delay))

    def fail(
        self, record: Record[Any] | AsyncRecord[Any], error: str | BaseException | None = None
    ) -> None:
        """``record.fail(error)`` at the commit."""
        self._complete(record, _plain_record(record)._fail_operation(error))

    def release(self, record: Record[Any] | AsyncRecord[Any], delay: float | None = None) -> None:
        """``record.release(delay)`` at the commit."""
        self._complete(record, _plain_record(record)._release_operation(delay))

    def cancel(self, queue: Queue[Any] | AsyncQueue[Any], job_id: int) -> None:
        """``queue.cancel(job_id)`` at the commit."""
        plain = _plain_queue(queue)
        self._require_open()
        self._add(plain, plain._cancel_operation(job_id))

    def _complete(self, record: Record[Any] | AsyncRecord[Any], operation: partial[None]) -> None:
        plain = _plain_record(record)
        self._add(plain._queue, operation)
        self._completed.append(plain)

    def _require_open(self) -> None:
        if self._state != "open":
            raise TransactionError("use a transaction inside its with block only")

    def _add(self, queue: Queue[Any], operation: Operation, adds: int = 0) -> None:
        self._require_open()
        # Also makes the queue now, so that the commit does not have to.
        self._collect(queue, queue._ledger.environment, operation, adds)

    def _collect(
        self, handle: Queue[Any] | Space, environment: Environment, operation: Operation, adds: int
    ) -> None:
        """Add an operation of `handle`, whose store is open as `environment`."""
        self._require_open()
        if environment is not self._store._environment:
            raise TransactionError(f"{handle!r} is not in the transaction's store {self._store!r}")
        self._operations.append(operation)
        self._adds += adds

    def __enter__(self) -> Self:
        if self._state != "new":
            raise TransactionError("a transaction is used once: call store.transaction() again")
        self._state = "open"
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._state = "closed"
        if kind is None and self._operations:
            self._commit()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._state = "closed"
        if kind is None and self._operations:
            await asyncio.get_running_loop().run_in_executor(None, self._commit)

    def _commit(self) -> None:
        try:
            while True:
                try:
                    self._store._environment.write_all(self._operations, self._adds)
                except QueueFull:
                    if not self._make_room():
                        raise
                else:
                    break
        except BaseException:
            for pending in self._puts:
                pending.job_id = 0
            raise
        for record in self._completed:
            record._held = False

    def _make_room(self) -> bool:
        """Remove a batch of done jobs of each queue that the puts are for; whether there were any."""
        removed = [
            queue._write(queue._room_operation())
            for queue in self._put_in
            if queue._may_make_room(self._adds)
        ]
        return any(removed)


def _plain_queue(queue: Queue[Any] | AsyncQueue[Any]) -> Queue[Any]:
    """The queue that does the work."""
    return cast("Queue[Any]", getattr(queue, "_queue", cast("Any", queue)))


def _plain_record(record: Record[Any] | AsyncRecord[Any]) -> Record[Any]:
    """The record that does the work."""
    return cast("Record[Any]", getattr(record, "_record", cast("Any", record)))
