"""How many sleep on each bell: a small mapped file that sleepers write and ringers read."""

from __future__ import annotations

import mmap
import os

from equeue_core._store._bell_descriptor import Descriptor, open_file
from equeue_core._store._permissions import make_directory

SLOTS = 1 << 17
MAXIMUM = (1 << 32) - 1
LISTENING = 1
"""The lowest bit of a broadcast bell's cell; the others number its hang-ups."""
GENERATION = 0
"""The cell of a bell that nobody can wait for, the jobs of the store itself: see `Bells.reset`."""

_SIZE = 4 * SLOTS
_PAGE = max(mmap.PAGESIZE, 4096)


def hang_ups(cell: int) -> int:
    """How often a broadcast bell has rung."""
    return cell >> 1


def next_hang_up(cell: int) -> int:
    """A broadcast bell's cell once it has rung: nobody listens."""
    return ((cell | LISTENING) + 1) & MAXIMUM


class CountsFile:
    """The mapped file.

    It is sparse, and only that part of it is ever looked at, from the start, that has been given
    blocks on the disk. To touch a hole through a mapping kills the process when the disk is full (on
    some file systems to read it is enough); asking for the blocks first, it is an error.
    """

    def __init__(self, path: str) -> None:
        self._file = _opened(path)
        descriptor = self._file.fileno()
        if os.fstat(descriptor).st_size != _SIZE:
            # In place and without clearing, so that it is safe whoever else has it mapped: a count
            # too high costs a wasted token, and one too low would cost a wake-up.
            os.ftruncate(descriptor, _SIZE)
        self._mapped = memoryview(mmap.mmap(descriptor, _SIZE)).cast("I")
        self.cells = self._mapped[:0]

    def reach(self, slot: int) -> memoryview[int]:
        """The cells, at least up to `slot` [lock held].

        Raises:
            OSError: the disk is full.
        """
        if slot >= len(self.cells):
            end = (4 * slot // _PAGE + 1) * _PAGE
            _reserve(self._file.fileno(), 4 * len(self.cells), end)
            self.cells = self._mapped[: end // 4]
        return self.cells

    def drop(self) -> None:
        """Close the file; the mapping goes with the last reference to `cells`."""
        self._file.close()


def _reserve(descriptor: int, start: int, end: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, end - start)
    else:
        os.pwrite(descriptor, os.pread(descriptor, end - start, start), start)


def _opened(path: str) -> Descriptor:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return open_file(path, flags)
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
        return open_file(path, flags)
