"""Waking blocked consumers of other processes, without polling and without cost when nobody sleeps.

There are two kinds of bell. A *token bell* wakes one sleeper for each job: a FIFO that gets one
byte for each, which stays there until a sleeper that woke up has looked for a job. A *broadcast
bell* wakes everyone: sleepers hold a FIFO open for reading, and it is opened for writing and
closed again, which every reader sees as a hang-up, until it opens the FIFO anew.

Who sleeps is counted in a mapped file (`_bell_counts`), one cell for each bell. Counts change
under the store's lock only, where "looked for a job and found none, so I am counted" and "put a
job, nobody is counted, so I need not ring" cannot pass each other. Why no wake-up is lost on a
token bell:

1. **count + unread tokens >= live sleepers.** To sleep is count + 1. To ring is one token more,
   *then* count - 1. To be awake again (`Waiter.settle`, `Waiter.leave`) is one token less, or
   count - 1 if there is none. Each step either keeps the sum together with the number of sleepers,
   or is cut short by a kill or an exception where the sum is too high by one.
2. **While count > 0 there are at least as many tokens as jobs ready to be claimed.** Nobody is
   counted before a look that found no job. Whoever makes a job ready while count > 0 brings a
   token for it. A token is read only after a look: either that look took jobs (one token less, and
   at least one job) or there were none. Who leaves without a look hands its token on first.
3. **Each token has woken somebody who will look.** A write wakes one sleeping poller
   (EPOLLEXCLUSIVE) and the token remains readable until after the look, so a sleeper that was
   about to sleep does not. Should the one that was woken die before its look, its owner lock's
   life FIFO wakes all the others (`_owners`), whose waiters watch it as `extra_fd`: a process must
   become an owner before it sleeps, and announce that on the store's broadcast bell, for others to
   watch it.

A sleeper that is killed stays counted. It costs a later ring one token for nobody, which wakes
somebody for nothing, who is counted again. Such surplus never goes away by itself; `reset` clears
it. Call that when an owner was found dead. A waiter that is woken for nothing again and again does
it as well.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

from equeue_core._store._bell_descriptor import Descriptor, open_fifo
from equeue_core._store._bell_ringer import NOTHING, STORE, Ringer, changes_slot, jobs_slot
from equeue_core._store._wait_line import Line
from equeue_core._store._wait_poller import Poller
from equeue_core._store._waiter import Waiter

__all__ = ["STORE", "Bells", "Waiter", "changes_slot", "jobs_slot"]

_POOLED = 64
"""Idle lines kept for each queue's jobs; more threads of a process rarely wait at once."""

_POOLED_LISTENERS = 4
"""Idle lines kept for each other bell: there are more of these, and waits for them are rarer."""


class Bells(Ringer):
    """The bells of one store, as one process uses them."""

    def __init__(self, directory: str, poller: Callable[[], Poller] | None = None) -> None:
        """See `Ringer`."""
        super().__init__(directory, poller)
        self._pools: dict[object, list[Line]] | None = {}
        self._lines: weakref.WeakSet[Line] = weakref.WeakSet()

    def waiter(
        self,
        jobs: tuple[int, ...] = (),
        changes: tuple[int, ...] = (),
        extra_fd: int | None = None,
    ) -> Waiter:
        """A waiter for any of these bells, from the pool if one is idle.

        Every waiter also hears the store's broadcast bell (queue 0).

        Parameters:
            jobs: queue ids whose jobs to wait for.
            changes: queue ids whose changes to wait for.
            extra_fd: a descriptor to watch as well (`Owners.watch_fd`); it has to stay open as
                long as these bells are. None or negative: none.
        """
        key = (jobs, changes, extra_fd)
        pool = [] if self._pools is None else self._pools.setdefault(key, [])
        try:
            line = pool.pop()
            line.clean()
        except IndexError:
            line = Line(self, jobs, changes, extra_fd, pool)
            self._lines.add(line)
        return Waiter(line)

    def give_back(self, line: Line) -> None:
        """Keep an idle line for the next waiter, or close it."""
        most = _POOLED if line.seats else _POOLED_LISTENERS
        if self._pools is not None and len(line.pool) < most and len(line.ear_slots) <= 2:
            line.pool.append(line)
        else:
            line.close()

    def token(self, slot: int) -> Descriptor:
        """This process's end of a token bell, shared by its waiters and open until `close`."""
        found = self._tokens.get(slot)
        if found is None:
            # Never without a writer (itself): such a FIFO would report a hang-up for ever.
            found = self._tokens.setdefault(slot, open_fifo(self.path(slot), os.O_RDWR))
        return found

    def close(self) -> None:
        """Close what is idle; a waiter in use is closed when it is given back."""
        pools, self._pools = self._pools, None
        for pool in (pools or {}).values():
            while pool:
                try:
                    pool.pop().close()
                except IndexError:
                    break

    def drop(self) -> None:
        """In a forked child: close what was inherited; nothing that the parent shares changes."""
        self.close()
        for line in list(self._lines):
            line.close()
        for token in self._tokens.values():
            token.close()
        self._tokens.clear()
        self.cells = NOTHING
        file, self._file = self._file, None
        if file is not None:
            file.drop()
