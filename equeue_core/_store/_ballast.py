"""Disk blocks held back, so that a store on a full disk can still be worked off.

The file's size tells all processes how things are: `SIZE` bytes are held back; none: they were given
up for completing jobs, and work may be added again only when they, or as many free pages within the
data file, are there; no file: there was no room for it from the start.
"""

from __future__ import annotations

import contextlib
import os

from equeue_core._store._permissions import hand_over

NAME = "ballast"

SIZE = 1 << 20
"""Bytes held back: room for about 250 pages."""

_CHECK_EVERY = 1 << 16
"""Bytes of work added after which the file is looked at again; far less than it holds back."""

_COMMIT = 512
"""Bytes that a commit counts besides what it adds."""


class Ballast:
    """The ballast of one store, as one process sees it.

    Attributes:
        spent: it was given up, and could not be taken back yet.
    """

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, NAME)
        self._unchecked = 0
        self.spent = False

    def make(self) -> None:
        """Take the blocks, if that was never tried and the disk has room to spare."""
        if os.path.exists(self._path):
            self._look()
        elif self._free() >= 4 * SIZE and not self._fill(os.O_EXCL):
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def drop(self) -> bool:
        """Give the blocks up; False if there were none."""
        try:
            if os.stat(self._path).st_size == 0:
                return False
            os.truncate(self._path, 0)
        except OSError:
            return False
        self.spent = True
        return True

    def count(self, added: int) -> None:
        """Note that so many bytes of work are going to be added, and look after `spent`."""
        self._unchecked += added + _COMMIT
        if self.spent or self._unchecked > _CHECK_EVERY:
            self._unchecked = 0
            self._look()

    def _look(self) -> None:
        try:
            self.spent = os.stat(self._path).st_size == 0
        except OSError:
            self.spent = False
        # Twice as much: or it would be spent again at once.
        if self.spent and self._free() >= 2 * SIZE:
            self.spent = not self._fill()

    def _fill(self, flags: int = 0) -> bool:
        written = 0
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
            try:
                # Really written, in unlike bytes: a hole, or a block that compresses away, holds
                # nothing back.
                written = os.pwrite(descriptor, os.urandom(SIZE), 0)
            finally:
                if written < SIZE:
                    os.ftruncate(descriptor, 0)
                os.close(descriptor)
            hand_over(self._path)
        return written == SIZE

    def _free(self) -> int:
        if not hasattr(os, "statvfs"):
            return 4 * SIZE
        room = os.statvfs(os.path.dirname(self._path))
        return room.f_bavail * room.f_frsize
