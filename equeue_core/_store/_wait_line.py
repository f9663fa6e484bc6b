"""What a waiter sleeps in: its descriptors, and its places in the counts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from equeue_core._store._bell_counts import GENERATION, LISTENING, MAXIMUM, hang_ups
from equeue_core._store._bell_descriptor import NO_BELL, Descriptor, bytes_waiting, open_fifo
from equeue_core._store._wait_poller import NAP

if TYPE_CHECKING:
    from equeue_core._store._bells import Bells

_FUTILE = 4
"""Tokens in a row that brought no job, after which the counts are taken for too high."""


class _Seat:
    """A place in one token bell's count.

    Each change is made in the order in which an interruption leaves the count too high, never too
    low.
    """

    __slots__ = ("_bell", "_bells", "_generation", "_taken", "queue_id", "slot")

    def __init__(self, bells: Bells, queue_id: int) -> None:
        self.queue_id = queue_id
        self.slot = 2 * queue_id
        self._bells = bells
        self._bell = bells.token(self.slot)
        self._generation = 0
        self._taken = False

    def number(self) -> int:
        return self._bell.fileno()

    def is_taken(self, counts: memoryview[int]) -> bool:
        if self._taken and self._generation != counts[GENERATION]:
            self._taken = False  # all were woken and forgotten: see Bells.reset
        return self._taken

    def take(self, counts: memoryview[int]) -> None:
        if not self.is_taken(counts):
            counts[self.slot] = min(counts[self.slot] + 1, MAXIMUM)
            self._generation = counts[GENERATION]
            self._taken = True

    def settle(self, counts: memoryview[int]) -> bool:
        if not self.is_taken(counts):
            return False
        self._taken = False
        if self._bell.read(1):
            return True
        self._taken = True
        return False

    def leave(self, counts: memoryview[int]) -> None:
        if not self.is_taken(counts):
            return
        if bytes_waiting(self._bell):
            # Perhaps for a job that nobody has looked for. It is handed on before it is read.
            self._bells.ring(self.queue_id)
            self._taken = False
            self._bell.read(1)
        else:
            self._taken = False
            if counts[self.slot]:
                counts[self.slot] -= 1


class _Ear(NamedTuple):
    """A broadcast bell's FIFO, and how often the bell had rung when it was opened."""

    fifo: Descriptor
    heard: int


class Line:
    """The descriptors of a waiter, which outlive it in the pool."""

    def __init__(
        self,
        bells: Bells,
        jobs: tuple[int, ...],
        changes: tuple[int, ...],
        extra_fd: int | None,
        pool: list[Line],
    ) -> None:
        self.bells = bells
        self.pool = pool
        self.poller = bells.make_poller()
        self.seats: list[_Seat] = []
        self.ear_slots: list[int] = []
        self.ears: dict[int, _Ear] = {}
        self.hung: set[int] = set()
        self.blind = False
        """Some bell cannot be heard: look again every `NAP` seconds."""
        self.consumed = False
        self.futile = 0
        self.last_slot = 2 * max((0, *jobs, *changes)) + 1
        if extra_fd is not None and extra_fd >= 0 and bells.has_fifos:
            self.poller.add(extra_fd)
        if bells.has_fifos:
            try:
                self._listen(jobs, changes)
            except OSError as error:
                self.fail(error)

    def _listen(self, jobs: tuple[int, ...], changes: tuple[int, ...]) -> None:
        for queue_id in dict.fromkeys(jobs):
            seat = _Seat(self.bells, queue_id)
            self.poller.add(seat.number(), exclusive=True)
            self.seats.append(seat)
        if self.bells.hang_ups_work():
            self.ear_slots = [2 * queue_id + 1 for queue_id in dict.fromkeys((0, *changes))]
        else:
            self.blind = any(changes)  # what the store itself has to tell can wait

    def fail(self, error: OSError) -> None:
        if error.errno not in NO_BELL:
            raise error
        self.blind = True

    def _open_ear(self, slot: int) -> None:
        """Listen to a broadcast bell, anew if it has rung: only opening it again ends a hang-up."""
        self.hung.add(slot)
        old = self.ears.get(slot)
        if old is not None:
            # Before it is closed: a forked child may keep the file open, and so the poller on it.
            self.poller.remove(old.fifo.fileno())
        cell = self.bells.counts(slot)[slot]
        new = _Ear(open_fifo(self.bells.side(slot), os.O_RDONLY), hang_ups(cell))
        self.poller.add(new.fifo.fileno())
        self.ears[slot] = new
        self.hung.discard(slot)

    def register(self) -> None:
        counts = self.bells.counts(self.last_slot)
        if self.consumed:
            self.consumed = False
            self.futile += 1
            if self.futile >= _FUTILE:
                self.futile = 0
                self.bells.reset([seat.queue_id for seat in self.seats])
        for slot in self.ear_slots:
            ear = self.ears.get(slot)
            if ear is None or slot in self.hung or ear.heard != hang_ups(counts[slot]):
                self._open_ear(slot)
        for seat in self.seats:
            seat.take(counts)
        for slot in self.ear_slots:
            # Not a number but a mark, set by whoever sleeps and cleared by whoever rings: nobody
            # who leaves can take away another's. Not set again: that would write the page to disk.
            if not counts[slot] & LISTENING:
                counts[slot] |= LISTENING

    def settle(self, claimed: int | None) -> None:
        counts = self.bells.cells
        for seat in self.seats:
            if claimed in (None, seat.queue_id) and seat.settle(counts):
                self.consumed = True

    def leave(self) -> None:
        counts = self.bells.cells
        for seat in self.seats:
            seat.leave(counts)
        self.consumed = False
        self.futile = 0

    def wait(self, timeout: float | None) -> bool:
        nap = self.blind and (timeout is None or timeout > NAP)
        ready = self.poller.wait(NAP if nap else timeout)
        for slot, ear in self.ears.items():
            if ear.fifo.fileno() in ready:
                self.hung.add(slot)
        return nap or bool(ready)

    def clean(self) -> None:
        """Forget what rang for the waiter before."""
        self.consumed = False
        self.futile = 0
        self.poller.clear()

    def is_registered(self) -> bool:
        counts = self.bells.cells
        return any(seat.is_taken(counts) for seat in self.seats)

    def close(self) -> None:
        self.poller.close()
        for ear in self.ears.values():
            ear.fifo.close()
