"""Making a store of a backup."""

from __future__ import annotations

import os
import shutil
import time

from equeue_core._maintenance import PARTIAL
from equeue_core._store import _files, _peek
from equeue_core._store._permissions import hand_over
from equeue_core.errors import StoreAccessError, StoreBusy


def restore(copy: str, path: str, replace: bool) -> str | None:
    """Put a copy of the backup at `path`.

    Parameters:
        copy: a store that no process has open, as ``Store.backup`` writes it.
        path: a new or empty directory; with `replace` also a store that no process has open.
        replace: whether what is at `path` may be moved aside.

    Returns:
        Where what was at `path` is now; None if nothing was.

    Raises:
        StoreBusy: the backup or the store is in use.
        StoreAccessError: `path` is not empty, or cannot be written.
        DiskFull: there is no room.
    """
    path, copy = os.path.abspath(path), os.path.abspath(copy)
    if os.path.realpath(path) == os.path.realpath(copy):
        raise StoreAccessError(f"{path!r} is the backup itself: give another directory")
    _peek.peek(copy)
    try:
        is_empty = _files.is_empty_directory(path)
        if not is_empty and not replace:
            raise StoreAccessError(
                f"{path!r} is not an empty directory: restore to a new one, or say --replace to move what is "
                "there aside"
            )
        with _peek.kept_out(copy) as unused:
            if not unused:
                raise StoreBusy(
                    f"a process has the store at {copy} open: it is no backup; make one with equeue backup"
                )
            return _swap(copy, path, is_empty)
    except OSError as error:
        if isinstance(error, StoreAccessError):
            raise
        raise _files.access_error(path, error) from error


def _swap(copy: str, path: str, is_empty: bool) -> str | None:
    # Complete, and on the same file system, before anything is moved.
    made = f"{path.rstrip(os.sep)}.{PARTIAL}-{os.getpid()}"
    try:
        _write(copy, made)
        if is_empty:
            _put_into(made, path)
            return None
        with _peek.kept_out(path) as unused:
            if not unused:
                raise StoreBusy(f"a process has the store at {path} open: stop it first")
            aside = f"{path.rstrip(os.sep)}.before-{time.strftime('%Y%m%d-%H%M%S')}"
            _give_to_owner_of(path, made)
            os.rename(path, aside)
            try:
                os.rename(made, path)
            except BaseException:
                os.rename(aside, path)
                raise
        _files.sync_directory(os.path.dirname(path))
        return aside
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write(copy: str, made: str) -> None:
    os.mkdir(made, 0o700)
    data = os.path.join(made, _files.DATA)
    shutil.copyfile(os.path.join(copy, _files.DATA), data)
    os.chmod(data, 0o600)
    hand_over(data)
    _files.sync_file(data)
    _files.sync_directory(made)


def _give_to_owner_of(path: str, made: str) -> None:
    """Root restores for the user who had the store."""
    state = os.stat(path)
    if os.geteuid() == 0:
        for each in (made, os.path.join(made, _files.DATA)):
            os.chown(each, state.st_uid, state.st_gid)
    os.chmod(made, state.st_mode & 0o7777)


def _put_into(made: str, path: str) -> None:
    """Move the data into a directory that may be a mount point, and so cannot be replaced."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    os.rename(os.path.join(made, _files.DATA), os.path.join(path, _files.DATA))
    _files.sync_directory(path)
