"""The job in hand."""

from __future__ import annotations

import contextlib
import reprlib
import traceback as tracebacks
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn

from equeue_core import _clock
from equeue_core import _ledger as books
from equeue_core._config import seconds as check_seconds
from equeue_core._job import encode_result
from equeue_core._retry import delay_of
from equeue_core._typing import T

if TYPE_CHECKING:
    from equeue_core._queue import Queue
    from equeue_core._store._combine import Operation


_nothing = int
"""A function in C that takes no arguments: what is to be done with a job that is not held any more."""

_TRACEBACK_LIMIT = 16_384
"""Characters of a traceback that are kept: the end, where the error is."""


class Record(Generic[T]):
    """A claimed job, as ``Queue.get`` returns it: the only handle that can complete it.

    Completion (`ack`, `nack`, `fail`, `release`) works once, and only while the claim is held. A
    record that is dropped unfinished gives its job back at this process's next operation, without
    spending a retry.

    Attributes:
        payload: what was put, decoded.
        job_id: the job's number in its queue.
        attempt: number of this delivery, 1 for the first.
        retries: how many deliveries before this one were nacked, crashed or ran out of their lease.
        enqueued_at: when the job was put, in epoch seconds.
        priority: the job's priority; smaller runs first.
    """

    __slots__ = (
        "_dropped",
        "_owner",
        "_queue",
        "attempt",
        "enqueued_at",
        "job_id",
        "payload",
        "priority",
        "retries",
    )

    payload: T

    def __init__(
        self,
        queue: Queue[T],
        owner: int,
        job_id: int,
        attempt: int,
        retries: int,
        enqueued_at: float,
        priority: float,
        payload: Any,
        serial: int,
    ) -> None:
        # A bound method takes less memory than a partial: it is there for each record.
        self._dropped: Callable[[], Any] = MethodType(
            queue._ledger.environment.add_chore, (_give_back, queue, owner, job_id, attempt, serial)
        )
        self.payload = payload  # still encoded: the queue decodes it once the claim is committed
        self.job_id = job_id
        self.attempt = attempt
        self.retries = retries
        self.enqueued_at = enqueued_at
        self.priority = priority
        self._queue = queue
        self._owner = owner

    @property
    def _held(self) -> bool:
        """Whether the job may still be this record's to complete."""
        return self._dropped is not _nothing

    @_held.setter
    def _held(self, held: Literal[False]) -> None:
        self._dropped = _nothing

    @property
    def queue(self) -> str:
        """Name of the queue that the job is in."""
        return self._queue.name

    def ack(self, result: Any = None) -> None:
        """Mark the job as done.

        Parameters:
            result: plain data kept with the job, for ``Queue.result``.

        Raises:
            ClaimLost: the claim is not held any more; nothing changed.
            PayloadError: the result cannot be stored; the job is still in hand.
            QueueClosed: the queue was closed.
        """
        self._complete(self._ack_operation(result))

    def nack(self, error: str | BaseException | None = None, delay: float | None = None) -> None:
        """Reject the job: it runs again, behind its equals, or is FAILED when its retries are
        spent.

        Parameters:
            error: what went wrong, kept with the job.
            delay: seconds before it may run again; None means what the queue's ``backoff`` says.

        Raises:
            ClaimLost: the claim is not held any more; nothing changed.
            ValueError: the delay is negative or not finite.
            QueueClosed: the queue was closed.
        """
        self._complete(self._nack_operation(error, delay))

    def fail(self, error: str | BaseException | None = None) -> None:
        """Mark the job as FAILED at once, whatever retries it has left.

        Parameters:
            error: why, as for `nack`.

        Raises:
            ClaimLost: the claim is not held any more; nothing changed.
            QueueClosed: the queue was closed.
        """
        self._complete(self._fail_operation(error))

    def release(self, delay: float | None = None) -> None:
        """Give the job back to its place without spending a retry.

        Parameters:
            delay: seconds before it may run again; None means at once.

        Raises:
            ClaimLost: the claim is not held any more; nothing changed.
            ValueError: the delay is negative or not finite.
            QueueClosed: the queue was closed.
        """
        self._complete(self._release_operation(delay))

    def extend(self, seconds: float) -> None:
        """Let the lease end `seconds` from now instead; a claim without a lease gets one.

        Raises:
            ClaimLost: the claim is not held any more; nothing changed.
            ValueError: not a number of seconds >= 0.
            QueueClosed: the queue was closed.
        """
        self._queue._write(self._extend_operation(seconds))

    # Completions as operations, also for transactions and for AsyncRecord

    def _ack_operation(self, result: Any) -> partial[None]:
        width = self._queue._options.width
        return self._bound(books.ack, result=encode_result(result), width=width)

    def _fail_operation(self, error: str | BaseException | None) -> partial[None]:
        return self._bound(books.fail, error=describe_error(error))

    def _release_operation(self, delay: float | None) -> partial[None]:
        wait = None if delay is None else check_seconds("delay", delay)
        return self._bound(books.release, delay=wait)

    def _extend_operation(self, seconds: float) -> partial[None]:
        return self._bound(books.extend, seconds=check_seconds("seconds", seconds))

    def _nack_operation(
        self, error: str | BaseException | None, delay: float | None
    ) -> partial[None]:
        backoff = self._queue._options.backoff
        described = describe_error(error)
        if delay is not None:
            wait = check_seconds("delay", delay)
        elif backoff is None:
            wait = 0.0
        else:
            wait, wrong = delay_of(backoff, self.retries + 1)
            if wrong:
                described = described or {"at": _clock.wall(), "message": "nacked"}
                described["message"] += f" ({wrong})"
        return self._bound(books.nack, error=described, delay=wait)

    def _bound(self, change: Callable[..., None], **arguments: Any) -> partial[None]:
        """A change of this record's job as an operation."""
        return partial(change, ledger=self._queue._ledger, token=self._token(), **arguments)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Record cannot be pickled: the claim is this process's; pass on its payload and job_id"
        )

    def _complete(self, operation: partial[None]) -> None:
        self._queue._write(operation)
        self._held = False

    def _token(self) -> books.Token:
        return books.Token(self.job_id, self.attempt, self._owner)

    def __repr__(self) -> str:
        payload = reprlib.repr(self.payload)
        return (
            f"<Record of job {self.job_id} in {self.queue!r}, delivery {self.attempt}: {payload}>"
        )

    # The destructor: calls `_dropped`, which notes down that the job is to be given back. It is found
    # and called without a bytecode, at which an asynchronous exception could arrive and be ignored,
    # and the job would be claimed as long as this process lives. It makes no transaction, because it
    # may be run inside one: the next operation does.
    __del__ = property(attrgetter("_dropped"))


def _give_back(
    queue: Queue[Any], owner: int, job_id: int, attempt: int, serial: int
) -> Operation | None:
    """What gives a dropped record's job back; None in a child of the process that claimed it."""
    ledger = queue._lazy_ledger
    if ledger is None or ledger.environment.owners.owner_id != owner:
        return None
    token = books.Token(job_id, attempt, owner)
    return partial(books.give_back, ledger=ledger, token=token, serial=serial)


def describe_error(error: str | BaseException | None) -> dict[str, Any] | None:
    """An attempt's error as it is stored with the job."""
    if error is None:
        return None
    if isinstance(error, str):
        return {"at": _clock.wall(), "message": error}
    text = ""
    with contextlib.suppress(Exception):  # an exception whose own methods fail
        text = "".join(tracebacks.format_exception(type(error), error, error.__traceback__))
    try:
        message = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an exception whose own methods fail
        message = type(error).__name__
    return {"at": _clock.wall(), "message": message, "traceback": text[-_TRACEBACK_LIMIT:]}
