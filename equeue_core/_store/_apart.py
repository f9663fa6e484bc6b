"""Work that nothing may interrupt, in a thread of its own.

Signal handlers run in the main thread, and a time limit sends its exception to the thread that works. A
thread that nobody knows gets neither.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable

_LOOK = 0.05
"""Seconds after which the waiting thread looks for itself, should it have been interrupted."""

_start_new_thread = _thread.start_new_thread  # references of our own: some programs patch them
_allocate_lock = _thread.allocate_lock


class _Task:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.error: BaseException | None = None
        self.ended = False
        self.wake = _allocate_lock()
        self.wake.acquire()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised where it was asked for
            self.error = error
        self.ended = True
        self.wake.release()


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
