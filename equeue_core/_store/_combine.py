"""Group commit: one synced transaction for the operations of all threads that wait for one.

A thread that brings an operation either leads (takes every queued operation and runs them in one
transaction) or waits to be told that a leader did it. Leading passes to a waiting thread at once,
so that the next batch gathers while the last one is being flushed.

What makes it safe against exceptions that arrive between any two bytecodes: a batch becomes
committed in one step with its transaction, and a waiter never needs the leader's help. Whoever
finds the leadership free may look at its own batch: committed means done, anything else means to
lead it again.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from equeue_core._store._txn import Txn
from equeue_core.errors import EQueueError

if TYPE_CHECKING:
    from equeue_core._store._environment import Environment

Operation = Callable[[Txn], Any]

MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""What a mistake raises. Not `Exception`: a time limit's comes from outside, and is for this thread."""

_BACKSTOP = 0.05
"""Seconds after which a waiter looks for itself: only ever needed when a leader was killed by an
exception.
"""

_LINGER_SHARE = 0.5
"""A leader waits for company at most this share of the last commit's time."""

_sleep = time.sleep  # a reference of our own: applications patch time.sleep


class Request:
    """One thread's operation and what became of it."""

    __slots__ = (
        "abandoned",
        "adds",
        "batch",
        "done",
        "error",
        "next",
        "operation",
        "result",
        "wake",
    )

    def __init__(self, operation: Operation, adds: int) -> None:
        self.operation = operation
        self.adds = adds
        self.result: Any = None
        self.error: Exception | None = None
        self.batch: Batch | None = None
        self.done = False
        self.abandoned = False
        self.next: Request | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    def settled(self) -> bool:
        """Whether a batch with this request was committed."""
        return self.batch is not None and bool(self.batch.committed)


class Batch:
    """What requests in one transaction share. `committed` has an entry once that transaction is.

    It does not know its requests: in a cycle of references the records among their results would
    not be given back when they are dropped, but when the garbage collector comes by.
    """

    __slots__ = ("adds", "committed", "flushed")

    def __init__(self, adds: int) -> None:
        self.adds = adds
        self.flushed = False
        self.committed: list[bool] = []


class Halfway(EQueueError):
    """A refusal after something was written: the whole transaction has to be undone."""

    def __init__(self, refusal: EQueueError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Mistaken(EQueueError):
    """An operation raised what a mistake in it, or in what it was given, raises: the whole transaction has
    to be undone.

    Attributes:
        request: whose operation it was.
        mistake: what it raised.
    """

    def __init__(self, request: Request, mistake: Exception) -> None:
        super().__init__(str(mistake))
        self.request = request
        self.mistake = mistake


def error_of(error: EQueueError) -> Exception:
    """What the owner of a request is to be told, which was run alone."""
    return error.mistake if isinstance(error, Mistaken) else error


def run_all(requests: list[Request], txn: Txn) -> None:
    """Run every request. A refusal (made before anything was written) is its owner's alone.

    Raises:
        Halfway: one was refused later than that.
        Mistaken: one failed in another way.
    """
    for request in requests:
        request.error = None
        try:
            request.result = request.operation(txn)
        except Halfway:
            raise
        except EQueueError as refusal:
            request.result, request.error = None, refusal
        except MISTAKES as mistake:
            raise Mistaken(request, mistake) from mistake


def added(requests: list[Request]) -> int:
    """About how many bytes of work these add, which have to be flushed: none by what was refused."""
    return sum(request.adds for request in requests if request.error is None)


def commit_and_mark(txn: Txn, mark: Callable[[], None]) -> None:
    """Commit, then call `mark`, without a bytecode in between at which an exception could arrive.

    The two calls are made by ``chain`` in C: each ``iter(call, None)`` calls once and ends at the
    None.
    """
    deque(chain(iter(txn.commit, None), iter(mark, None)), maxlen=0)


class Combiner:
    """Hands the operations of many threads to one transaction at a time."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._queue: deque[Request] = deque()
        # Reentrant: a signal handler's operation inside the leader's own thread leads in its turn.
        self._leading = threading.RLock()
        self._company = 1
        self._last_commit = 0.0

    def submit(self, operation: Operation, adds: int) -> Any:
        """Run `operation` in some synced transaction; its result, or its refusal raised."""
        request = Request(operation, adds)
        self._queue.append(request)
        try:
            while not request.done:
                if not self._try_to_lead(request):
                    request.wake.acquire(timeout=_BACKSTOP)
        except BaseException:
            request.abandoned = True
            raise
        finally:
            if request.next is not None:
                self._signal(request.next)
        if request.error is not None:
            raise request.error
        return request.result

    def _try_to_lead(self, request: Request) -> bool:
        """Lead if nobody does; False if somebody does."""
        try:
            if not self._leading.acquire(False):
                return False
            self._lead(request)
        finally:
            # Its first call: an exception that arrives in another one would leave the lock behind.
            try:
                self._leading.release()
            except RuntimeError:  # not ours: somebody else leads
                pass
        # After the release: whoever queued later found the leadership free, whoever queued before
        # is seen here.
        if self._queue:
            self._signal(self._queue[0])
        return True

    def _lead(self, own: Request) -> None:
        if own.settled():
            self._finish(own.batch, [own])
            return
        self._linger()
        requests = self._take(own)
        if own.settled():
            # A signal handler's operation took it along while it was still in the queue.
            self._finish(own.batch, [own])
            requests.remove(own)
            if not requests:
                return
        started = time.monotonic()
        try:
            self._commit(requests)
        except BaseException:
            # From outside. Who is left finds its way at the backstop, but somebody else may always be ahead.
            self._queue.extendleft(
                each
                for each in reversed(requests)
                if each is not own and not each.done and not each.settled()
            )
            raise
        self._last_commit = time.monotonic() - started
        self._company = len(requests)

    def _commit(self, requests: list[Request]) -> None:
        """Run requests in one transaction; in one for each if there is something against that, which
        concerns some of them only: a full disk, say, or a collected transaction refused halfway.
        """
        batch = Batch(added(requests))
        for request in requests:
            request.batch = batch
        try:
            # In C and returning None, as commit_and_mark needs it.
            mark = partial(batch.committed.append, True)
            self._environment.transact(partial(run_all, requests), batch.adds, mark)
        except EQueueError as error:
            if len(requests) == 1:
                requests[0].error = error_of(error)
                self._tell(requests)
                return
            for request in requests:
                self._commit([request])
            if isinstance(error, Mistaken) and error.request.error is None:
                raise error.mistake from None  # it came from outside, and is this thread's
            return
        batch.adds = added(requests)
        self._finish(batch, requests)

    def _finish(self, batch: Batch | None, requests: list[Request]) -> None:
        """A committed batch's promise was kept (or is kept now): tell the owners of these requests."""
        assert batch is not None
        if batch.adds and not batch.flushed:
            self._environment.keep_promise()
        batch.flushed = True
        self._tell(requests)

    def _tell(self, requests: list[Request]) -> None:
        """Tell the owners of these requests that they are done.

        Each owner wakes the next one as it leaves. Woken all at once they would only queue up for the
        interpreter, and keep the next leader from it.
        """
        following: Request | None = None
        for request in reversed(requests):
            request.next, following = following, request
            request.done = True

    def _linger(self) -> None:
        """Wait a little for as many operations as the last batch had: together they cost one
        flush.
        """
        if self._company < 2 or len(self._queue) >= self._company:
            return
        deadline = time.monotonic() + self._last_commit * _LINGER_SHARE
        while len(self._queue) < self._company and time.monotonic() < deadline:
            _sleep(0)

    def _take(self, own: Request) -> list[Request]:
        requests = [own]
        while self._queue:
            try:
                request = self._queue.popleft()
            except IndexError:  # a signal handler's operation took the rest
                break
            if request is not own and not request.abandoned and not request.done:
                requests.append(request)
        return requests

    @staticmethod
    def _signal(request: Request) -> None:
        with contextlib.suppress(RuntimeError):  # signalled already
            request.wake.release()
