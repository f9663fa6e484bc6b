"""The ringing half of the bells; see `_bells` for how they work and why no wake-up is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable

from equeue_core._store._bell_counts import (
    GENERATION,
    LISTENING,
    MAXIMUM,
    CountsFile,
    hang_ups,
    next_hang_up,
)
from equeue_core._store._bell_descriptor import NO_BELL, Descriptor, empty, open_file
from equeue_core._store._wait_poller import (
    EpollPoller,
    GeventPoller,
    NapPoller,
    Poller,
    best_poller,
)
from equeue_core._store._wait_probe import hang_ups_work

STORE = 0
"""The queue id that stands for the store itself."""

NOTHING = memoryview(b"").cast("I")
"""The cells of a file that is not mapped."""

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


class Ringer:
    """Rings the bells of one store."""

    def __init__(self, directory: str, poller: Callable[[], Poller] | None = None) -> None:
        """Nothing is opened or made before the first use.

        Parameters:
            directory: where the FIFOs and the counts are; made with mode 0700 if missing.
            poller: makes what waiters sleep in; default: the best that the platform has.
        """
        self.directory = directory
        self.make_poller = poller or best_poller()
        self.has_fifos = self.make_poller is not NapPoller
        self.cells = NOTHING  # as far as they have been needed
        self._file: CountsFile | None = None
        self._tokens: dict[int, Descriptor] = {}
        on_linux = self.make_poller in (EpollPoller, GeventPoller)
        self._hang_ups: bool | None = True if on_linux else None

    def ring(self, queue_id: int, n: int = 1) -> None:
        """Wake up to `n` sleepers of a queue's jobs, just before the commit [lock held].

        For whatever makes `n` jobs ready to be claimed: put, nack, promotion, recovery, resume.
        """
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
        if not self.has_fifos:
            return 0
        try:
            return self.counts(slot)[slot]
        except OSError as error:
            if error.errno in NO_BELL:  # then nobody can be counted here
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
