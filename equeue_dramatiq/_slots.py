"""How many messages a worker may have in hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic as _now
from weakref import WeakSet

from equeue_dramatiq._turns import Turns

_AHEAD = 64
"""Messages that may be claimed before a thread is free for them, at most."""

_HORIZON = 0.005
"""Seconds: as many messages are claimed ahead as the threads have lately ended in this time."""

_STUCK = 0.02
"""Seconds without an end after which messages that were claimed ahead go back."""

_WEIGHT = 0.1
"""Of the latest interval between two ends, in their mean."""


class Slots:
    """A number of messages that may be in hand at a time; the consumers of one worker share it.

    Dramatiq's own brokers fetch twice as many messages as there are threads, to hide the way over the
    network. A claim is a matter of microseconds here, and what is not claimed before a thread is free
    can be run by whoever is free first, and after a more urgent message that came later. So messages
    are claimed ahead only while they are ended so fast that they start within milliseconds, and they
    go back if that turns out wrong.

    Parameters:
        number: how many.
        unload: gives back what no thread has started; None: nothing is ever claimed ahead.
    """

    def __init__(self, number: int, unload: Callable[[], None] | None = None) -> None:
        self.number = number
        self.turns = Turns()  # not the broker's: a fork may leave them locked in the child
        self._unload = unload
        self._in_hand = 0
        self._ahead = 0
        self._pace = _HORIZON  # mean seconds between two ends: nothing is claimed ahead at first
        self._last = 0.0
        self._closed = False
        self._offshoots: WeakSet[Slots] = WeakSet()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def wait(self, seconds: float) -> tuple[int, float]:
        """Wait up to `seconds` until some are free: how many (0 if none is), and how many seconds a
        claim may wait for a message.
        """
        until = _now() + seconds
        while True:
            with self._changed:
                room = 0 if self._closed else self._room()
                patience = seconds if self._in_hand <= self.number else min(seconds, _STUCK)
                stuck = self._in_hand > self.number and _now() - self._last > _STUCK
                if not stuck:
                    if room:
                        return room, patience
                    left = until - _now()
                    if left <= 0:
                        return 0, 0.0
                    self._changed.wait(min(left, patience))
            if stuck and self._unload is not None:
                self._slow_down()
                self._unload()

    def _room(self) -> int:
        """Free slots; 0 as long as it is better to wait until more are free."""
        room = self.number + self._ahead - self._in_hand
        return room if room > self._ahead // 2 else 0

    def take(self, number: int) -> bool:
        """Count `number` messages as in hand; False (and nothing is counted) once it is closed.

        Consumers that wait at the same time may together take more than were free.
        """
        with self._changed:
            if self._closed:
                return False
            if not self._in_hand:
                self._last = _now()
            self._in_hand += number
            return True

    def end(self) -> None:
        """Count a message as done with by a thread."""
        self._free(1, ended=True)

    def give_back(self, number: int) -> None:
        """Count `number` messages as given back."""
        self._free(number, ended=False)

    def _free(self, number: int, ended: bool) -> None:
        # Time limits and aborts throw an exception into the thread, which arrives when some call has
        # returned: a condition's own `with` would then leave the lock behind.
        lock = self._lock
        try:
            lock.acquire()
            self._in_hand -= number
            if ended:
                self._measure()
            if self._room():
                # All of them: one may find its queue empty.
                self._changed.notify_all()
        finally:
            try:
                lock.release()
            except RuntimeError:  # the exception came before the lock
                pass

    def _measure(self) -> None:
        now = _now()
        self._pace += (now - self._last - self._pace) * _WEIGHT
        self._last = now
        if self._unload is not None:
            self._ahead = min(_AHEAD, int(_HORIZON / max(self._pace, 1e-9)))

    def _slow_down(self) -> None:
        with self._changed:
            self._pace = max(self._pace, _STUCK)
            self._ahead = 0
            self._last = _now()  # look again later

    @property
    def are_taken(self) -> bool:
        """Whether a message is in hand."""
        with self._changed:
            return self._in_hand > 0 or any(slots.are_taken for slots in self._offshoots)

    def offshoot(self, number: int) -> Slots:
        """Slots of a consumer's own, which are closed together with these."""
        slots = Slots(number)
        slots.turns = self.turns
        with self._changed:
            slots._closed = self._closed
            self._offshoots.add(slots)
        return slots

    def close(self) -> None:
        """Let nothing more be taken: the worker is about to stop."""
        with self._changed:
            self._closed = True
            offshoots = list(self._offshoots)
        for slots in offshoots:
            slots.close()
