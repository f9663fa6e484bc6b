"""Making a store of a backup."""

from __future__ import annotations

import os
import secrets
import shutil
import time

from equeue_core._maintenance import PARTIAL
from equeue_core._store import _files, _peek
from equeue_core._store._exchange import exchange
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
    # Where a link leads is what is replaced, and not the link.
    path, copy = os.path.realpath(path), os.path.realpath(copy)
    if path == copy:
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
            if is_empty:
                _fill(copy, path)
                return None
            return _swap(copy, path)
    except OSError as error:
        if isinstance(error, StoreAccessError):
            raise
        raise _files.access_error(path, error) from error


def _fill(copy: str, path: str) -> None:
    """Write it into a directory, which may be a mount point: below it, and moved at the end."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    made = os.path.join(path, PARTIAL)
    shutil.rmtree(made, ignore_errors=True)
    try:
        os.mkdir(made, 0o700)
        _write(copy, made, path)
        os.rename(os.path.join(made, _files.DATA), os.path.join(path, _files.DATA))
        _files.sync_directory(path)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _swap(copy: str, path: str) -> str:
    """Put it in the place of a directory; where that is then."""
    # Complete, and on the same file system, before anything is moved. A name that comes once: a kill may
    # leave under it what was at the path.
    made = f"{path}.{PARTIAL}-{secrets.token_hex(4)}"
    aside = _unused(f"{path}.before-{time.strftime('%Y%m%d-%H%M%S')}")
    os.mkdir(made, 0o700)
    ours = os.stat(made)
    try:
        _write(copy, made, path)
        os.chmod(made, os.stat(path).st_mode & 0o7777)
        with _peek.kept_out(path) as unused:
            if not unused:
                raise StoreBusy(f"a process has the store at {path} open: stop it first")
            try:
                swapped = exchange(made, path)
                if not swapped:
                    os.rename(path, aside)
            except OSError as error:
                raise StoreAccessError(
                    f"{path!r} cannot be renamed ({error.strerror}), as a mount point cannot: move its "
                    "files elsewhere, and restore to the empty directory"
                ) from error
            if swapped:
                # What was at the path is now where the copy was made.
                os.rename(made, aside)
            else:
                _move_in(made, path, aside)
        _files.sync_directory(os.path.dirname(path))
        return aside
    finally:
        # Whatever has come in between (Ctrl-C, say): not what was at the path.
        if os.path.exists(made) and os.path.samestat(os.stat(made), ours):
            shutil.rmtree(made, ignore_errors=True)


def _unused(name: str) -> str:
    """A name like this at which nothing is."""
    found, number = name, 2
    while os.path.lexists(found):
        found, number = f"{name}-{number}", number + 1
    return found


def _move_in(made: str, path: str, aside: str) -> None:
    try:
        os.rename(made, path)
    except OSError as error:
        raise StoreAccessError(
            f"somebody has made a new {path!r} meanwhile ({error.strerror}): stop that, and move it "
            f"away; what was there before is at {aside!r}"
        ) from error


def _write(copy: str, made: str, like: str) -> None:
    """Copy the data into the new directory `made`, for the user who owns the directory `like`."""
    data = os.path.join(made, _files.DATA)
    shutil.copyfile(os.path.join(copy, _files.DATA), data)
    os.chmod(data, 0o600)
    if os.geteuid() == 0:  # who restores for another
        owner = os.stat(like)
        for each in (made, data):
            os.chown(each, owner.st_uid, owner.st_gid)
    _files.sync_file(data)
    _files.sync_directory(made)
