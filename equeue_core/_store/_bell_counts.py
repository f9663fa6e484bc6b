"""How many sleep on each bell: a small mapped file that sleepers write and ringers read."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from typing import Protocol

from equeue_core._store._bell_descriptor import NO_ROOM, Descriptor, open_file

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


class Counts(Protocol):
    """Cells of 32 bits."""

    def __getitem__(self, slot: int, /) -> int:
        """What is in it."""


class LazyCounts:
    """Stands where the mapping will be, and maps the file at the first look."""

    def __init__(self, mapped: Callable[[], memoryview[int]]) -> None:
        self._mapped = mapped

    def __getitem__(self, slot: int) -> int:
        try:
            return self._mapped()[slot]
        except OSError as error:
            if error.errno in NO_ROOM:  # nobody can have slept here
                return 0
            raise


class CountsFile:
    """The mapped file."""

    def __init__(self, path: str) -> None:
        self._file = _opened(path)
        descriptor = self._file.fileno()
        if os.fstat(descriptor).st_size != _SIZE:
            # In place and without clearing, so that it is safe whoever else has it mapped: a count
            # too high costs a wasted token, and one too low would cost a wake-up.
            os.ftruncate(descriptor, _SIZE)
        self.cells = memoryview(mmap.mmap(descriptor, _SIZE)).cast("I")
        self._reserved: set[int] = set()

    def reserve(self, slot: int) -> None:
        """Give the cell a block on the disk [lock held].

        The file is sparse. Writing to a hole through a mapping kills the process when the disk is
        full; here it is an error.

        Raises:
            OSError: the disk is full.
        """
        page = 4 * slot // _PAGE
        if page not in self._reserved:
            descriptor, offset = self._file.fileno(), page * _PAGE
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, offset, _PAGE)
            else:
                os.pwrite(descriptor, os.pread(descriptor, _PAGE, offset), offset)
            self._reserved.add(page)

    def drop(self) -> None:
        """Close the file; the mapping goes with the last reference to `cells`."""
        self._file.close()


def _opened(path: str) -> Descriptor:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return open_file(path, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return open_file(path, flags)
