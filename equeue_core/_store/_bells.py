"""Waking blocked consumers of other processes, without polling and without cost when nobody sleeps.

There are two kinds of bell. A *token bell* wakes one sleeper for each job: a FIFO that gets one
byte for each, which stays there until a sleeper that woke up has looked for a job. A *broadcast
bell* wakes everyone: sleepers hold a FIFO open for reading, and it is opened for writing and
closed again, which every reader sees as a hang-up.

Who sleeps is counted in a mapped file (`_bell_counts`), one cell for each bell. Counts change
under the store's lock only, where "looked for a job and found none, so I am counted" and "put a
job, nobody is counted, so I need not ring" cannot pass each other. Why no wake-up is lost on a
token bell:

1. **count + unread tokens >= live sleepers.** To sleep is count + 1. To ring is one token more,
   *then* count - 1. To be awake again (`Waiter.settle`, `Waiter.leave`) is one token less, or
   count - 1 if there is none. Each step either keeps the sum together with the number of sleepers,
   or is cut short by a kill or an exception where the sum is too high by one.
2. **While count > 0 there are at least as many tokens as jobs ready to be claimed.** Nobody is
   counted before a look that found no job. A job put while count > 0 brings a token. A token is
   read only after a look: either that look took a job (both less by one) or there was none (0
   jobs). Who leaves without a look hands its token on first.
3. **Each token has woken somebody who will look.** A write wakes one sleeping poller
   (EPOLLEXCLUSIVE) and the token remains readable until after the look, so a sleeper that was
   about to sleep does not. Should the one that was woken die before its look, its owner lock's
   life FIFO wakes all the others (`_owners`), whose waiters watch it as `extra_fd`: a process must
   become an owner before it sleeps, and announce that on the store's broadcast bell, for others to
   watch it.

A sleeper that is killed stays counted. It costs the next ring one token for nobody, which wakes a
sleeper for nothing. Such surplus is never lost by itself, only handed around; `reset` clears it.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable, Iterable

from equeue_core._store._bell_counts import (
    GENERATION,
    LISTENING,
    MAXIMUM,
    CountsFile,
    hang_ups,
    next_hang_up,
)
from equeue_core._store._bell_descriptor import NO_ROOM, Descriptor, empty, open_fifo, open_file
from equeue_core._store._wait_line import Line
from equeue_core._store._wait_poller import EpollPoller, NapPoller, Poller, best_poller
from equeue_core._store._wait_probe import hang_ups_work
from equeue_core._store._waiter import Waiter

__all__ = ["STORE", "Bells", "Waiter", "changes_slot", "jobs_slot"]

STORE = 0
"""The queue id that stands for the store itself."""

_NOTHING = memoryview(b"").cast("I")

_POOLED = 64
"""Idle lines kept for each key; more than that many threads of a process rarely wait at once."""

_KEPT = 256
"""Token bells that stay open for ringing; those beyond are opened each time."""


def jobs_slot(queue_id: int) -> int:
    """The token bell of a queue."""
    return 2 * queue_id


def changes_slot(queue_id: int) -> int:
    """The broadcast bell of a queue; of queue 0, of the whole store."""
    return 2 * queue_id + 1


def _allow_shortage(error: OSError) -> None:
    """Let a process that has no descriptor left go on with its work; sleepers look now and then."""
    if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise error


class Bells:
    """The bells of one store, as one process uses them."""

    def __init__(self, directory: str, poller: Callable[[], Poller] | None = None) -> None:
        """Nothing is opened or made before the first use.

        Parameters:
            directory: where the FIFOs and the counts are; made with mode 0700 if missing.
            poller: makes what waiters sleep in; default: the best that the platform has.
        """
        self.directory = directory
        self.make_poller = poller or best_poller()
        self.has_fifos = self.make_poller is not NapPoller
        self._file: CountsFile | None = None
        self.cells = _NOTHING  # as far as they have been needed
        self._hang_ups: bool | None = True if self.make_poller is EpollPoller else None
        self._tokens: dict[int, Descriptor] = {}
        self._pools: dict[object, list[Line]] | None = {}
        self._lines: weakref.WeakSet[Line] = weakref.WeakSet()

    # Ringing

    def ring(self, queue_id: int, n: int = 1) -> None:
        """Wake up to `n` sleepers of a queue's jobs, just before the commit [lock held]."""
        try:
            sleepers = self.cells[queue_id * 2]
        except IndexError:
            sleepers = self._first_look(queue_id * 2)
        if sleepers:
            self._ring(queue_id * 2, n)

    def broadcast(self, queue_id: int) -> None:
        """Wake all sleepers of a queue's changes; queue 0: of the store [lock held]."""
        try:
            cell = self.cells[queue_id * 2 + 1]
        except IndexError:
            cell = self._first_look(queue_id * 2 + 1)
        if cell & LISTENING:
            self._hang_up(queue_id * 2 + 1)

    def reset(self, queue_ids: Iterable[int]) -> None:
        """Wake and forget all sleepers of these queues' jobs [lock held].

        The live ones register again; the dead ones are gone from the counts. The order is such that
        who is killed halfway has woken everyone, or has left a count too high.
        """
        if not self.hang_ups_work():
            return
        counts = self.counts(GENERATION)
        self._hang_up(changes_slot(STORE))
        counts[GENERATION] = (counts[GENERATION] + 1) & MAXIMUM
        for queue_id in queue_ids:
            slot = jobs_slot(queue_id)
            counts = self.counts(slot)
            if counts[slot]:
                counts[slot] = 0
            self._drain(slot)

    def _first_look(self, slot: int) -> int:
        try:
            return self.counts(slot)[slot]
        except OSError as error:
            if error.errno in NO_ROOM:  # then nobody can be counted here
                return 0
            raise

    def _ring(self, slot: int, n: int) -> None:
        counts = self.counts(slot)
        try:
            bell = self._ringer(slot)
            for _ in range(min(counts[slot], n)):
                # One write for each: a write wakes one sleeper, however long it is.
                if bell.write(b"\0") is None:
                    # Full of tokens that nobody reads: wake whoever there is another way.
                    self.reset((slot // 2,))
                    return
                left = counts[slot]
                if left:  # a signal handler in between may have rung too
                    counts[slot] = left - 1
        except FileNotFoundError:
            counts[slot] = 0
        except OSError as error:
            _allow_shortage(error)

    def _ringer(self, slot: int) -> Descriptor:
        """This process's end of a token bell that others made."""
        found = self._tokens.get(slot)
        if found is None:
            # Open for reading as well, so that no reader's death can turn a write into SIGPIPE.
            found = open_file(self.path(slot), os.O_RDWR | os.O_NONBLOCK)
            if len(self._tokens) < _KEPT:
                found = self._tokens.setdefault(slot, found)
        return found

    def _hang_up(self, slot: int) -> None:
        counts = self.counts(slot)
        try:
            open_file(self.side(slot), os.O_WRONLY | os.O_NONBLOCK).close()
        except OSError as error:
            if error.errno not in (errno.ENXIO, errno.ENOENT):
                _allow_shortage(error)
                return
        counts[slot] = next_hang_up(counts[slot])

    def _drain(self, slot: int) -> None:
        try:
            empty(self._ringer(slot))
        except FileNotFoundError:
            pass
        except OSError as error:
            _allow_shortage(error)

    # Waiting

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
        if self._pools is not None and len(line.pool) < _POOLED:
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

    def hang_ups_work(self) -> bool:
        """Whether broadcast bells can be heard on this platform."""
        if self._hang_ups is None:
            self._hang_ups = self.has_fifos and hang_ups_work(self.directory, self.make_poller)
        return self._hang_ups

    def path(self, slot: int) -> str:
        """Where the FIFO of a token bell is."""
        return os.path.join(self.directory, str(slot))

    def side(self, slot: int) -> str:
        """Where the one of a broadcast bell's two FIFOs is that rings next.

        They take turns: a reader that closes a FIFO stirs all that sleep on it, and all the
        readers that were woken close theirs.
        """
        return os.path.join(self.directory, f"{slot}.{hang_ups(self.counts(slot)[slot]) & 1}")

    def counts(self, slot: int = GENERATION) -> memoryview[int]:
        """The cells, at least up to `slot` [lock held].

        Raises:
            OSError: the file cannot be made, or there is no room on the disk for this part of it.
        """
        if slot >= len(self.cells):
            if self._file is None:
                self._file = CountsFile(os.path.join(self.directory, "sleepers"))
            self.cells = self._file.reach(slot)
        return self.cells

    # The end

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
        self.cells = _NOTHING
        file, self._file = self._file, None
        if file is not None:
            file.drop()
