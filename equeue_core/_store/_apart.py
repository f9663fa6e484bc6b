"""Work that nothing may interrupt, in a thread of its own.

Signal handlers run in the main thread, and a time limit sends its exception to the thread that works. A
thread that nobody knows gets neither.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
from collections.abc import Callable

_LOOK = 0.05
"""Seconds after which the waiting thread looks for itself, should it have been interrupted."""

_start_new_thread = _thread.start_new_thread  # references of our own: some programs patch them
_allocate_lock = _thread.allocate_lock

_threads: set[int] = set()


def is_here() -> bool:
    """Whether this thread does such work."""
    return _thread.get_ident() in _threads


class _Rest:
    """The garbage collector rests while at least one thread is in this ``with`` block.

    It would run destructors in that thread, and one that uses a store may want a lock that is held by the
    thread that waits for the work.
    """

    def __init__(self) -> None:
        self._lock = _allocate_lock()
        self._depth = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._was_on = gc.isenabled()
            # Before: a child that is forked in between has to know.
            self._depth += 1
            gc.disable()

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            if self._depth == 1:
                self._wake()
            self._depth -= 1

    def _wake(self) -> None:
        if self._was_on:
            gc.enable()

    def after_fork(self) -> None:
        """In the child, where those threads are not."""
        if self._depth:
            self._wake()
        self._lock = _allocate_lock()
        self._depth = 0
        _threads.clear()  # a thread of this process may get the same number


_rest = _Rest()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rest.after_fork)


class _Task:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.error: BaseException | None = None
        self.ended = False
        self.wake = _allocate_lock()
        self.wake.acquire()

    def run(self) -> None:
        _threads.add(_thread.get_ident())
        try:
            with _rest:
                self._work()
        except BaseException as error:  # noqa: BLE001 - raised where it was asked for
            self.error = error
        _threads.discard(_thread.get_ident())
        self.ended = True
        self.wake.release()


def begin(work: Callable[[], None]) -> None:
    """Have `work()` done by another thread, without waiting for it; not at all if the interpreter ends."""
    with contextlib.suppress(RuntimeError):
        _start_new_thread(work, ())


def run(work: Callable[[], None]) -> None:
    """Run `work()` where no handler and no exception for this thread comes in between.

    If this thread is interrupted meanwhile, the work goes on all the same.
    """
    task = _Task(work)
    try:
        _start_new_thread(task.run, ())
    except RuntimeError:  # the interpreter is ending, or there are no more threads
        work()
        return
    while not task.ended:
        task.wake.acquire(timeout=_LOOK)
    if task.error is not None:
        raise task.error
