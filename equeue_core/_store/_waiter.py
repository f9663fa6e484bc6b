"""One sleeper."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from equeue_core._store._wait_line import Line


@final
class Waiter:
    """Sleeps until one of its bells rings. Use it as a context manager, or `close` it.

    The order of calls: look for a job and, in the transaction that found none, `settle()` then
    `register()`; `wait()`; look again. In the transaction that found one: `settle()`, then
    `leave()`. Who gives up before a look calls `leave()` in a transaction of its own. A waiter
    that is closed while it is registered stays counted, as if it had been killed.
    """

    __slots__ = ("_line",)

    def __init__(self, line: Line) -> None:
        self._line: Line | None = line

    def register(self) -> None:
        """Be counted among the sleepers [lock held, by the transaction that found nothing]."""
        line = self._line
        # It may be closed: whoever was to sleep was interrupted, while a thread that commits for many was
        # about to run this look. That is no business of the others.
        if line is None or not line.bells.has_fifos:
            return
        try:
            line.register()
        except OSError as error:
            line.fail(error)

    def settle(self, claimed: int | None = None) -> None:
        """Be done with the token that woke this waiter, if one did [lock held, after the look].

        Parameters:
            claimed: the queue id whose job was found, if the waiter has several: only that one was
                looked at to the end. None: no job was found in any of them, or the waiter has but
                one.
        """
        line = self._line
        if line is not None and line.seats:
            line.settle(claimed)

    @property
    def registered(self) -> bool:
        """Whether it is counted as a sleeper of any jobs."""
        line = self._line
        return line is not None and line.is_registered()

    def leave(self) -> None:
        """Be counted no longer [lock held]. Harmless if repeated, or never registered.

        A token that is there is handed on to another sleeper, because perhaps nobody has looked
        for its job. After a look, call `settle` first, or somebody else is woken for nothing.
        """
        line = self._line
        if line is not None and line.seats:
            line.leave()

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until something rings; True if something did, perhaps for nothing.

        Parameters:
            timeout: seconds, exact to less than a millisecond; None: no limit.
        """
        return self._open_line().wait(timeout)

    def kick(self) -> None:
        """Make the current `wait`, or the next, return True; for threads and signal handlers."""
        line = self._line
        if line is not None:
            line.poller.kick()

    def fileno(self) -> int:
        """A descriptor that is readable while `wait` would return at once; -1 if there is none."""
        return self._open_line().poller.fileno()

    def close(self) -> None:
        """Give the descriptors back to the pool; harmless if repeated."""
        line, self._line = self._line, None
        if line is not None:
            if line.blind or line.is_registered():
                line.close()
            else:
                line.bells.give_back(line)

    def _open_line(self) -> Line:
        line = self._line
        if line is None:
            raise ValueError("the waiter is closed")
        return line

    def __enter__(self) -> Waiter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
