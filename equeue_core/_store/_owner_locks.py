"""Byte-range locks that the kernel gives back when a process dies.

Linux's open-file-description locks belong to the open file, so that another descriptor of the same
file, closed anywhere in the process, cannot drop them. Elsewhere POSIX locks have to do: they
belong to the process, which must then open the file only once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys

from equeue_core._store._bell_descriptor import Descriptor

_OFD = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")
_SETLK = fcntl.F_OFD_SETLK if _OFD else fcntl.F_SETLK
_GETLK = fcntl.F_OFD_GETLK if _OFD else fcntl.F_GETLK

if sys.platform == "linux":
    _FLOCK = struct.Struct("hhqqi0q")  # type, whence, start, length, pid
    _TYPE = slice(0, 2)

    def _pack(kind: int, offset: int) -> bytes:
        return _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0)

else:
    _FLOCK = struct.Struct("qqihhi0q")  # start, length, pid, type, whence; FreeBSD adds a system id
    _TYPE = slice(20, 22)

    def _pack(kind: int, offset: int) -> bytes:
        return _FLOCK.pack(offset, 1, 0, kind, os.SEEK_SET, 0)


_FREE = struct.pack("h", fcntl.F_UNLCK)


def lock(descriptor: int, offset: int, shared: bool = False) -> None:
    """Lock one byte, or change the lock that this open file has on it, without waiting.

    Raises:
        BlockingIOError: another holds it.
    """
    kind = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
    try:
        fcntl.fcntl(descriptor, _SETLK, _pack(kind, offset))
    except OSError as error:
        if error.errno == errno.EACCES:  # POSIX allows both
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        raise


def twin_above(descriptor: int, number: int) -> Descriptor | None:
    """A second descriptor of the locked file, with a number above `number`.

    A dying process closes its files in the order of their numbers, but Linux finishes with them
    from the last to the first. With this twin, the locks are gone before the hang-up of the file
    that is `number` can be seen. None where locks go at the first close (POSIX), and the twin must
    not be.
    """
    if _SETLK == fcntl.F_SETLK:
        return None
    command = fcntl.F_DUPFD_CLOEXEC
    twins = map(fcntl.fcntl, (descriptor,), (command,), (number + 1,))
    return next(map(Descriptor, twins, ("rb+",)))


def unlock(descriptor: int, offset: int) -> None:
    """Unlock one byte; harmless if it is not locked."""
    fcntl.fcntl(descriptor, _SETLK, _pack(fcntl.F_UNLCK, offset))


def is_locked(descriptor: int, offset: int) -> bool:
    """Whether another open file (POSIX: another process) holds any lock on the byte."""
    return fcntl.fcntl(descriptor, _GETLK, _pack(fcntl.F_WRLCK, offset))[_TYPE] != _FREE
