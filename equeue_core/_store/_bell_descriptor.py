"""Descriptors that are neither leaked nor closed twice, whatever exception arrives in between.

An exception from outside (a signal handler, another thread) can arrive as soon as a call has
returned, before its result is stored: `fd = os.open(...)` may open and forget, `os.close(self.fd)`
may close and leave the number behind for a second close, which then hits somebody else's file. So
a number is given to an object of the interpreter's own in the same call that opens it.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections import deque
from collections.abc import Iterator
from io import FileIO
from itertools import chain, islice

if sys.platform != "win32":
    import fcntl
    import termios

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""A full disk has no room for a new FIFO, nor for a page of the sleepers' file."""

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_INT = struct.Struct("i")
_ZERO = _INT.pack(0)
_ONE = (1).to_bytes(8, "little")


class Descriptor:
    """One or two descriptors, closed by `close` or with the object."""

    __slots__ = ("_files",)

    def __init__(self, source: Iterator[int]) -> None:
        self._files: list[FileIO] = []
        self._files.extend(map(FileIO, source))

    @classmethod
    def opened(cls, path: str, flags: int) -> Descriptor:
        """The file at `path`; made with mode 0600 if `flags` ask for it."""
        return cls(map(os.open, (path,), (flags | _CLOEXEC,), (0o600,)))

    def fileno(self) -> int:
        """The number.

        Raises:
            ValueError: it is closed.
        """
        return self._files[0].fileno()

    def close(self) -> None:
        """Close; harmless if done before."""
        deque(map(FileIO.close, self._files), maxlen=0)

    def __del__(self) -> None:
        # Not left to FileIO, which would warn of it.
        self.close()


class Kick(Descriptor):
    """A flag that a poller can wait for: an eventfd, or a pipe where there is none."""

    __slots__ = ()

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            super().__init__(map(os.eventfd, (0,), (os.EFD_NONBLOCK | os.EFD_CLOEXEC,)))
        else:
            super().__init__(islice(chain.from_iterable(iter(os.pipe, None)), 2))
            for file in self._files:
                os.set_blocking(file.fileno(), False)

    def raise_flag(self) -> None:
        """Make it readable until it is lowered."""
        try:
            os.write(self._files[-1].fileno(), _ONE)
        except (BlockingIOError, ValueError):
            pass

    def lower_flag(self) -> None:
        """Make it unreadable again."""
        try:
            while len(os.read(self.fileno(), 4096)) == 4096:
                pass
        except BlockingIOError:
            pass


def open_fifo(path: str, flags: int) -> Descriptor:
    """The FIFO at `path`, made if missing, opened without blocking."""
    flags |= os.O_NONBLOCK
    try:
        opened = Descriptor.opened(path, flags)
        if stat.S_ISFIFO(os.fstat(opened.fileno()).st_mode):
            return opened
        os.unlink(path)  # what a copying tool makes of a FIFO
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        pass
    return Descriptor.opened(path, flags)


def bytes_waiting(descriptor: int) -> int:
    """How many bytes can be read from a FIFO."""
    if sys.platform == "win32":
        return 0
    return int(_INT.unpack(fcntl.ioctl(descriptor, termios.FIONREAD, _ZERO))[0])
