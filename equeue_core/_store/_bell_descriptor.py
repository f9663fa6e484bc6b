"""Descriptors that are neither leaked nor closed twice, whatever exception arrives in between.

An exception from outside (a signal handler, another thread) can arrive as soon as a call has
returned, before its result is stored: `fd = os.open(...)` may open and forget, `os.close(self.fd)`
may close and leave the number behind for a second close, which then hits somebody else's file. So
a number is given to a file object in the same call that opens it, and used through that object.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from io import FileIO

from equeue_core._store._permissions import hand_over, make_directory

if sys.platform != "win32":
    import fcntl
    import termios

NO_BELL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOENT)
"""A full disk has no room for a new FIFO, nor for a page of the sleepers' file; a limit of the process has
the same effect. In a directory that is being removed there is nothing: the next look at the store says so."""

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_INT = struct.Struct("i")
_ZERO = _INT.pack(0)


class Descriptor(FileIO):
    """An unbuffered file; `read` and `write` return None where they would block."""

    # What FileIO sets when an object dies open, so as to warn of it. Here that is no mistake, and a
    # __del__ of our own would be a place for an exception from outside to get lost in.
    _finalizing = property()


def open_file(path: str, flags: int) -> Descriptor:
    """The file at `path`; made with mode 0600 if `flags` ask for it."""
    opened = next(map(Descriptor, map(os.open, (path,), (flags | _CLOEXEC,), (0o600,)), ("rb+",)))
    if flags & os.O_CREAT:
        hand_over(path)
    return opened


def open_fifo(path: str, flags: int) -> Descriptor:
    """The FIFO at `path`, made if missing, opened without blocking."""
    flags |= os.O_NONBLOCK
    try:
        opened = open_file(path, flags)
        if stat.S_ISFIFO(os.fstat(opened.fileno()).st_mode):
            return opened
        os.unlink(path)  # what a copying tool makes of a FIFO
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
    try:
        os.mkfifo(path, 0o600)
        hand_over(path)
    except FileExistsError:
        pass
    return open_file(path, flags)


def bytes_waiting(fifo: Descriptor) -> int:
    """How many bytes can be read."""
    if sys.platform == "win32":
        return 0
    return int(_INT.unpack(fcntl.ioctl(fifo.fileno(), termios.FIONREAD, _ZERO))[0])


def empty(fifo: Descriptor) -> None:
    """Read all there is."""
    while fifo.read(4096):
        pass
