"""What a queue and a space have in common: they are closed with their store, and threads wait through
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equeue_core._store import Environment
    from equeue_core._store._waiter import Waiter


class Handle:
    """The base of both. A closed one's environment raises `QueueClosed`."""

    def __init__(self) -> None:
        self._closed = False
        self._waiters: set[Waiter] = set()

    @property
    def _environment(self) -> Environment:
        raise NotImplementedError

    def _wake(self) -> None:
        """Let those look again who wait through this very handle."""
        for waiter in list(self._waiters):
            waiter.kick()

    def _shut(self) -> None:
        closed, self._closed = self._closed, True
        if not closed:  # or else the waiters may be closing their descriptors: hands off
            self._wake()
