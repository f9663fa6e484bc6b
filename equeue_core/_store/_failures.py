"""LMDB's and the system's failures as the engine's errors, and the ballast that keeps a full disk
usable.
"""

from __future__ import annotations

import contextlib
import errno
import os

import lmdb

from equeue_core.errors import DiskFull, EQueueError, QueueCorrupted, QueueFull

BALLAST = "ballast"

BALLAST_BYTES = 1 << 20
"""Disk blocks held back for completing jobs when the disk is full: room for about 250 pages."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""LMDB reports a write that was cut short by a full disk as EIO."""

_DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
    lmdb.PanicError,
)


def is_disk_full(error: lmdb.Error) -> bool:
    """Whether the file system refused the write."""
    return isinstance(error, lmdb.DiskError) or error.code in _NO_ROOM


def translate(error: lmdb.Error, directory: str) -> EQueueError:
    """The engine's error for one of LMDB's, with what to do."""
    if isinstance(error, lmdb.MapFullError):
        return QueueFull(
            f"the memory map of the store at {directory} is full: complete or purge jobs, then put again"
        )
    if is_disk_full(error):
        return DiskFull(
            error.code or errno.ENOSPC,
            f"no room on the disk of the store at {directory}: nothing was written; free space and retry "
            "(getting and completing jobs goes on meanwhile)",
        )
    if isinstance(error, _DAMAGE):
        return QueueCorrupted(
            f"the data of the store at {directory} is damaged ({error}): stop its users, restore data.mdb "
            "from a backup, or remove the directory to start with an empty store"
        )
    return EQueueError(f"LMDB refused the operation on the store at {directory}: {error}")


def verify(path: str) -> list[str]:
    """What LMDB's offline verifier finds wrong with the pages of the data file; it reads all of
    them.
    """
    from lmdb import verify as verifier

    try:
        return [f"data.mdb: {problem}" for problem in verifier.verify(path)]  # type: ignore[no-untyped-call]
    except verifier.VerifyError as error:
        return [f"data.mdb: {error}"]


def make_ballast(directory: str) -> None:
    """Hold BALLAST_BYTES of real blocks in a file, if it is not there and the disk has room to
    spare.
    """
    path = os.path.join(directory, BALLAST)
    if os.path.exists(path) or not _has_room_to_spare(directory):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        written = 0
        try:
            # Really written, in unlike bytes: a hole, or a block that compresses away, holds
            # nothing back.
            written = os.write(descriptor, os.urandom(BALLAST_BYTES))
        finally:
            os.close(descriptor)
            if written < BALLAST_BYTES:
                os.unlink(path)


def _has_room_to_spare(directory: str) -> bool:
    if not hasattr(os, "statvfs"):
        return True
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize >= 4 * BALLAST_BYTES


def drop_ballast(directory: str) -> bool:
    """Free the ballast's blocks; False if there was none left to free."""
    try:
        os.unlink(os.path.join(directory, BALLAST))
    except OSError:
        return False
    return True
