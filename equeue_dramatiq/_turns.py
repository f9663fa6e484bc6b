"""Turns of threads that end many short messages."""

from __future__ import annotations

import threading
from time import monotonic as _now

_SHORT = 0.0002
"""Seconds from end to end up to which a thread's messages are short."""

_TURN = 0.005
"""Seconds of a turn, at most."""

_ABSENT = 0.001
"""Seconds without an end after which the holder of the turn has lost it."""


class Turns:
    """``with turns:`` around the end of a message, so that a thread may end several short ones in a row.

    An end is a transaction under the store's lock. Threads that queue for the lock hand it on at each
    message, and the next one has to wake up, and to get hold of the interpreter, before it can make use
    of it. Where that takes longer than a message, it is better if one thread goes on while the others
    sleep. This is advice: nothing but the time depends on it, and nobody waits for it for long.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._line = threading.Lock()
        self._holder = 0
        self._over_at = 0.0
        self._seen_at = 0.0
        self._thread = _Thread()

    def __enter__(self) -> None:
        thread = self._thread
        thread.is_fast = _now() - thread.ended_at < _SHORT
        if not thread.is_fast or self._holder == thread.id:
            return
        # Only the first in the line wakes up to look whether the holder is still there.
        with self._line:
            while not self._turn.acquire(timeout=_ABSENT):
                if _now() - self._seen_at > _ABSENT:
                    break  # it is in a long message: the turn passes to this thread
            self._holder = thread.id
            self._seen_at = _now()
            self._over_at = self._seen_at + _TURN

    def __exit__(self, *exception: object) -> None:
        thread = self._thread
        now = thread.ended_at = _now()
        if self._holder != thread.id:
            return
        self._seen_at = now
        if not thread.is_fast or now > self._over_at:
            self._holder = 0
            try:
                self._turn.release()
            except RuntimeError:
                pass  # it passed to another thread at this moment, which has released it


class _Thread(threading.local):
    """What is known of the calling thread."""

    def __init__(self) -> None:
        self.id = threading.get_ident()
        self.ended_at = 0.0
        self.is_fast = False
