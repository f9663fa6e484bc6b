"""How many messages a worker may have in hand."""

from __future__ import annotations

import threading


class Slots:
    """A number of messages that may be in hand at a time; the consumers of one worker share it.

    Dramatiq's own brokers fetch twice as many messages as there are threads, to hide the way over the
    network. Here a claim takes microseconds, and a message that is not claimed before a thread is
    free can be run by whoever is free first, and after a more urgent one that came later.

    Parameters:
        number: how many.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._closed = False
        self._changed = threading.Condition()

    def wait(self, seconds: float) -> int:
        """How many are free, waiting up to `seconds` for the first; 0 if none is."""
        with self._changed:
            if self._closed or self._free <= 0:
                self._changed.wait(seconds)
            return 0 if self._closed else max(0, self._free)

    def take(self, number: int) -> bool:
        """Count `number` messages as in hand; False (and nothing is counted) once it is closed.

        Consumers that wait at the same time may together take more than were free.
        """
        with self._changed:
            if not self._closed:
                self._free -= number
            return not self._closed

    def give_back(self, number: int = 1) -> None:
        """Count `number` messages as done with."""
        with self._changed:
            self._free += number
            self._changed.notify()

    def close(self) -> None:
        """Let nothing more be taken: the worker is about to stop."""
        with self._changed:
            self._closed = True
