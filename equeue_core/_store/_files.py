"""The directory of a store: making it, refusing what cannot be one, and noticing damage before
LMDB does.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from equeue_core._store import _failures, _mounts, _pages
from equeue_core._store._permissions import hand_over
from equeue_core.errors import (
    DiskFull,
    NetworkFileSystemError,
    QueueCorrupted,
    StoreAccessError,
    StoreRemoved,
)

DATA = "data.mdb"
LOCK = "lock"
OWNERS = "owners"
BELLS = "bell"
CLIENTS = "clients"

_IN_USE = b"equeue store; data.mdb holds the jobs\n"
"""Content of the lock file once data.mdb is complete, so that a lost data.mdb is not taken for a
new store.
"""

_HALF_MADE = 1 << 16
"""Bytes that a store has at most before its first transaction is complete."""


class _Making(threading.local):
    allowed = True


_making = _Making()


@contextlib.contextmanager
def making_none() -> Iterator[None]:
    """Let this thread open stores that are there, and make none: neither at a wrong path, nor where one was
    until a moment ago.
    """
    before, _making.allowed = _making.allowed, False
    try:
        yield
    finally:
        _making.allowed = before


def may_make() -> bool:
    """Whether this thread may make a store."""
    return _making.allowed


def prepare_directory(path: str, allow_network_fs: bool) -> str:
    """Make `path` a directory of mode 0700 if there is none; return its real, absolute path.

    Raises:
        StoreAccessError: it is a file, or may not be made, read or written.
        StoreRemoved: it is not there, and this thread makes none.
        NetworkFileSystemError: it is on a network file system and `allow_network_fs` is false.
    """
    try:
        if may_make():
            os.makedirs(path, mode=0o700, exist_ok=True)
        else:
            require(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreAccessError(
            f"{path!r} is not a directory: a store is a directory, give the path of one"
        ) from error
    except OSError as error:
        raise access_error(path, error) from error
    real = os.path.realpath(path)
    if not allow_network_fs:
        kind = _mounts.network_file_system(real)
        if kind is not None:
            raise NetworkFileSystemError(
                f"{real!r} is on a network file system ({kind}), where kernel locks and memory maps of "
                "several machines are not coherent: use a local directory, or pass allow_network_fs=True "
                "if only this one machine will ever open the store"
            )
    return real


def access_error(path: str, error: OSError) -> StoreAccessError | DiskFull:
    """`error` about `path`, in words that say what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _failures.disk_full(path, error.errno)
    if error.errno in (errno.EACCES, errno.EPERM):
        why = (
            f"no permission to read and write the store at {path!r} as user {_user()}: give this user the "
            "directory and its files, or run as their owner"
        )
    elif error.errno == errno.EROFS:
        why = f"the store at {path!r} is on a read-only file system: it needs a writable one"
    else:
        why = f"cannot use {path!r} as a store: {os.strerror(error.errno or 0)}"
    return StoreAccessError(error.errno, why)


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "this one"


def require(path: str) -> None:
    """Refuse a path at which nothing is.

    Raises:
        StoreRemoved: nothing is there.
    """
    try:
        os.stat(path)
    except FileNotFoundError as error:
        raise _removed(path) from error


def _removed(path: str) -> StoreRemoved:
    return StoreRemoved(f"{path} is not there: the store was removed")


def open_file(directory: str, name: str, make: bool = True) -> int:
    """A read-write descriptor of `directory`/`name`; if it is missing, it is made with mode 0600.

    Raises:
        StoreAccessError: it may not be opened or made.
        StoreRemoved: it is missing, and is not to be made.
    """
    path = os.path.join(directory, name)
    flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_BINARY", 0)
    try:
        try:
            return os.open(path, flags)
        except FileNotFoundError as error:
            if not make:
                raise _removed(path) from error
            descriptor = os.open(path, flags | os.O_CREAT, 0o600)
            hand_over(path)
            return descriptor
    except OSError as error:
        raise access_error(path, error) from error


def mark_in_use(lock_descriptor: int) -> None:
    """Note in the lock file that data.mdb is complete."""
    if os.pread(lock_descriptor, 1, 0) == b"":
        os.pwrite(lock_descriptor, _IN_USE + _pages.boot(), 0)
        os.fsync(lock_descriptor)


def check_data_file(directory: str, lock_descriptor: int, data_descriptor: int) -> None:
    """Refuse a data.mdb that was emptied, cut short or moved away, instead of starting an empty
    store.

    Raises:
        QueueCorrupted: jobs were here and the file no longer holds them.
        StoreAccessError: the file is a hard link into a store elsewhere.
    """
    path = os.path.join(directory, DATA)
    state = os.fstat(data_descriptor)
    used = os.pread(lock_descriptor, 1, 0) != b""
    if not used and _is_half_made(data_descriptor, state.st_size):
        os.ftruncate(data_descriptor, 0)
        return
    if state.st_size == 0:
        if used:
            raise QueueCorrupted(
                f"{path} is empty or missing although this store was in use: restore it from a backup, or "
                f"remove the directory {directory} to start with an empty store"
            )
        return
    if state.st_nlink > 1 and not used and not stat.S_ISLNK(state.st_mode):
        raise StoreAccessError(
            errno.EMLINK,
            f"{path} is a hard link to a store's data elsewhere: open the original directory, because "
            "locks and owners are kept beside the data",
        )
    expected = expected_size(path, data_descriptor)
    # Pages at the very end may never have been written (allocated and freed in one transaction), so
    # a short file alone proves nothing; reading it all does.
    if state.st_size < expected and _failures.verify(path):
        raise QueueCorrupted(
            f"{path} was cut short ({state.st_size} bytes of {expected}): restore it from a backup, or "
            f"remove the directory {directory} to start with an empty store"
        )
    _check_pages(path, lock_descriptor, data_descriptor)


def _is_half_made(descriptor: int, size: int) -> bool:
    """Whether making the file was cut short: no transaction was ever committed in it.

    A file of zeros only is rather a store that was lost.
    """
    if size > _HALF_MADE or not any(os.pread(descriptor, size, 0)):
        return False
    for number in range(_pages.META_PAGES):
        raw = os.pread(descriptor, _pages.META_SIZE, number * mmap.PAGESIZE)
        raw = raw.ljust(_pages.META_SIZE, b"\0")
        meta = _pages.read_meta(raw)
        if any(raw) and (meta is None or meta.transaction):
            return False
    return True


def _check_pages(path: str, lock_descriptor: int, data_descriptor: int) -> None:
    """Refuse a data.mdb with an overwritten page; see `_pages`."""
    boot = _pages.boot()
    looked_at = os.pread(lock_descriptor, 100, len(_IN_USE)) == boot
    page = _pages.overwritten_page(data_descriptor, _pages.FEW if looked_at else None)
    if page is not None:
        raise QueueCorrupted(
            f"page {page} of {path} was overwritten: restore it from a backup, or remove the directory "
            f"{os.path.dirname(path)} to start with an empty store"
        )
    if not looked_at and os.pread(lock_descriptor, 1, 0) != b"":
        os.pwrite(lock_descriptor, boot, len(_IN_USE))


def expected_size(path: str, descriptor: int) -> int:
    """Bytes that the newest meta page speaks of; 0 where the pages are another format's (LMDB will
    say).
    """
    first = os.pread(descriptor, _pages.META_SIZE, 0)
    if len(first) < _pages.META_SIZE:
        raise QueueCorrupted(
            f"{path} is not an LMDB database ({len(first)} bytes): restore it from a backup, or remove it "
            "and its lock file to start with an empty store"
        )
    size = _pages.page_size(first)
    metas = []
    for number in range(_pages.META_PAGES):
        raw = os.pread(descriptor, _pages.META_SIZE, number * size)
        if len(raw) < _pages.META_SIZE:
            return size * _pages.META_PAGES
        metas.append(_pages.read_meta(raw))
    newest = max((meta for meta in metas if meta), key=lambda meta: meta.transaction, default=None)
    return 0 if newest is None else (newest.last_page + 1) * size


def sync_file(path: str) -> None:
    """Make the file's content survive a power cut."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: str) -> None:
    """Make the directory's entries survive a power cut, where the platform can."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_empty_directory(path: str) -> bool:
    """Whether `path` is missing, or a directory that holds nothing."""
    place = Path(path)
    return not place.exists() or (place.is_dir() and not any(place.iterdir()))
