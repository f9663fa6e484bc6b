"""LMDB's and the system's failures as the engine's errors."""

from __future__ import annotations

import errno
import os

import lmdb

from equeue_core.errors import DiskFull, EQueueError, QueueCorrupted, QueueFull

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""LMDB reports a write that was cut short, by a full disk or a limit, as EIO."""

_AMPLE = 16 << 20
"""Bytes of free space with which a write is not cut short by a full disk."""

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
    return isinstance(error, lmdb.DiskError) or error.code in NO_ROOM


def translate(error: lmdb.Error, directory: str) -> EQueueError:
    """The engine's error for one of LMDB's, with what to do."""
    if isinstance(error, lmdb.MapFullError):
        return QueueFull(
            f"the memory map of the store at {directory} is full: complete or purge jobs, then put again"
        )
    if is_disk_full(error):
        return disk_full(directory, error.code)
    if isinstance(error, _DAMAGE):
        return QueueCorrupted(
            f"the data of the store at {directory} is damaged ({error}): stop its users, restore data.mdb "
            "from a backup, or remove the directory to start with an empty store"
        )
    return EQueueError(f"LMDB refused the operation on the store at {directory}: {error}")


def disk_full(directory: str, code: int | None = None) -> DiskFull:
    """What `put` raises when there is no room for it."""
    if _is_limited(code, directory):
        return DiskFull(
            code,
            f"a write to the store at {directory} was cut short: nothing was written; look for a limit on "
            "the size of files (ulimit -f), and for errors of the disk in the kernel's log, and retry",
        )
    return DiskFull(
        code or errno.ENOSPC,
        f"no room on the disk of the store at {directory}: nothing was written; free space and retry "
        "(getting and completing jobs goes on meanwhile)",
    )


def copy_failed(error: lmdb.Error, place: str) -> EQueueError:
    """The engine's error for one of LMDB's that ended a copy to `place`."""
    if is_disk_full(error) and not _is_limited(error.code, place):
        return DiskFull(
            error.code or errno.ENOSPC,
            f"no room for the copy at {place}: it was removed; free space there, or copy to another disk",
        )
    return translate(error, place)


def _is_limited(code: int | None, directory: str) -> bool:
    """Whether something else than a full disk has cut a write short."""
    if code not in (errno.EFBIG, errno.EIO):
        return False
    try:
        state = os.statvfs(directory)
    except OSError:
        return False
    return state.f_bavail * state.f_frsize >= _AMPLE


def verify(path: str) -> list[str]:
    """What LMDB's offline verifier finds wrong with the pages of the data file; it reads all of
    them.
    """
    from lmdb import verify as verifier

    try:
        return [f"data.mdb: {problem}" for problem in verifier.verify(path)]  # type: ignore[no-untyped-call]
    except verifier.VerifyError as error:
        return [f"data.mdb: {error}"]
