"""What kind of store a directory holds, found out without changing anything in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import Any

import lmdb

from equeue_core._store import _failures, _files, _format, _owner_locks, _registry


def peek(directory: str) -> dict[str, Any] | None:
    """The format record of the store at `directory`.

    Returns:
        None if it is not to be had this way: the file is not whole, or this process has it open. Who
        opens the store is told more.

    Raises:
        StoreVersionError, ForeignStoreError, QueueCorrupted: it is no store for this release.
        StoreAccessError: the file cannot be read.
    """
    path = os.path.join(directory, _files.DATA)
    try:
        with _shared_lock(directory), open(path, "rb") as data:
            state = os.fstat(data.fileno())
            if _registry.has(state.st_dev, state.st_ino) or state.st_size == 0:
                return None
            if state.st_size < _files.expected_size(path, data.fileno()):
                return None
            return _read(directory)
    except lmdb.Error as error:
        raise _failures.translate(error, directory) from error
    except OSError as error:
        raise _files.access_error(directory, error) from error


@contextlib.contextmanager
def kept_out(directory: str) -> Iterator[bool]:
    """Keep other processes from opening the store; yields whether that was possible."""
    with _presence(directory) as descriptor:
        if descriptor is not None:
            try:
                _owner_locks.lock(descriptor, 0)
            except BlockingIOError:
                yield False
                return
        yield True


@contextlib.contextmanager
def _presence(directory: str) -> Iterator[int | None]:
    try:
        descriptor = os.open(os.path.join(directory, _files.OWNERS), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _shared_lock(directory: str) -> Iterator[None]:
    """The store's lock, for reading; a backup that was never opened has none."""
    try:
        descriptor = os.open(os.path.join(directory, _files.LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _read(directory: str) -> dict[str, Any] | None:
    with (
        lmdb.open(directory, readonly=True, lock=False, create=False) as environment,
        environment.begin() as txn,
    ):
        return _format.read_format(txn, directory)
