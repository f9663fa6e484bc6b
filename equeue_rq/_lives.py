"""Which workers live, as the kernel knows it.

A worker holds a lock on a file of its own. The lock belongs to the open file, which the worker's horse
shares, forked or spawned: the kernel drops it once both are gone, however that happens, and not before.
Who gets the lock then knows that nobody runs the worker's job, and is the only one who looks after it.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from equeue_core.storage import Descriptor, make_directory, open_file

DIRECTORY = "rq-workers"
"""Where in a store's directory the files are."""

_SPAWNED = "EQUEUE_RQ_LIFE"
"""The environment variable by which a spawned horse knows the number of its worker's file."""

_TRIES = 50
_PAUSE = 0.01
"""Seconds between the tries to get a lock that somebody may just be looking at."""

_sleep = time.sleep  # a reference of our own: tests of applications patch it


class Life:
    """A locked file: a living worker's own, or a dead one's while somebody looks after it.

    Attributes:
        key: the key under which RQ keeps the worker.
        has_forerunner: a worker of this name is dead, and nobody has looked after it yet.
    """

    has_forerunner = False

    def __init__(self, path: str, file: Descriptor, key: str) -> None:
        self.key = key
        self._path = path
        self._file = file
        self._handed_on_by: int | None = None
        _held.add(self)

    def end(self, mourned: bool = True) -> None:
        """Let it go.

        Parameters:
            mourned: there is nothing left to be done for the worker, so the file goes, too.
        """
        if mourned and not self._file.closed:
            with suppress(OSError):
                os.unlink(self._path)
        self._file.close()

    @contextmanager
    def shared_with_fork(self) -> Iterator[None]:
        """What this thread forks meanwhile shares it."""
        self._handed_on_by = threading.get_ident()
        try:
            yield
        finally:
            self._handed_on_by = None

    @contextmanager
    def shared_with_spawned(self) -> Iterator[None]:
        """What is spawned meanwhile shares it, unless its parent closes what it does not know."""
        number = self._file.fileno()
        os.environ[_SPAWNED] = str(number)
        os.set_inheritable(number, True)
        try:
            yield
        finally:
            os.set_inheritable(number, False)
            os.environ.pop(_SPAWNED, None)

    def hand_on_no_longer(self) -> None:
        """Do not share it with what is forked from now on."""
        self._handed_on_by = None

    def leave_in_child(self) -> None:
        """Close it in a child that was not meant to share it."""
        if self._handed_on_by != threading.get_ident():
            self._file.close()


def keep_from_children() -> None:
    """In a horse: what it forks or spawns in its turn does not share its worker's life."""
    for life in list(_held):
        life.hand_on_no_longer()
    number = os.environ.pop(_SPAWNED, None)
    if number is not None:
        with suppress(OSError, ValueError):
            os.set_inheritable(int(number), False)
            _inherited.append(Descriptor(int(number), "rb+"))


def begin(store: str, db: int, key: str) -> Life | None:
    """The life of a worker that starts; None if it cannot be known: another worker of this name lives, or
    there is no room.

    Parameters:
        store: the store's directory.
        db: the number of the database.
        key: the key under which RQ keeps the worker.
    """
    path = _path(store, db, key)
    try:
        make_directory(os.path.dirname(path))
        for _ in range(_TRIES):
            file = _locked(path, os.O_RDWR | os.O_CREAT)
            if file is not None:
                life = Life(path, file, key)
                life.has_forerunner = os.fstat(file.fileno()).st_size > 0
                # What is there is the same: the name of the file tells.
                if not life.has_forerunner:
                    os.pwrite(file.fileno(), key.encode(), 0)
                return life
            _sleep(_PAUSE)
    except OSError:
        pass
    return None


def is_alive(store: str, db: int, key: str) -> bool | None:
    """Whether a worker lives; None if it is none of those that hold a lock. Nothing is changed.

    Parameters:
        store, db, key: as for `begin`.
    """
    try:
        file = open_file(_path(store, db, key), os.O_RDONLY)
    except OSError:
        return None
    with file:
        return _is_held(file)


def dead(store: str, db: int, prefix: str) -> Iterator[Life]:
    """Of each dead worker the life, to be ended when it has been looked after.

    Parameters:
        store, db: as for `begin`.
        prefix: with what the keys of workers start; others are none of ours.
    """
    for path in _paths(store, db):
        with suppress(OSError):
            file = _locked(path, os.O_RDWR)
            if file is None:
                continue
            key = _key_in(file)
            life = Life(path, file, key)
            if key.startswith(prefix):
                yield life
            life.end(mourned=not key)


def living(store: str, db: int, prefix: str) -> Iterator[str]:
    """The key of each worker that lives, or whose horse does. Parameters as for `dead`."""
    for path in _paths(store, db):
        with suppress(OSError), open_file(path, os.O_RDONLY) as file:
            key = _key_in(file)
            if key.startswith(prefix) and _is_held(file):
                yield key


def _is_held(file: Descriptor) -> bool:
    """Whether somebody has the lock. It is taken for a moment, and shared: who looks for dead ones meanwhile
    finds this one at the next look.
    """
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _key_in(file: Descriptor) -> str:
    return os.pread(file.fileno(), 1 << 16, 0).decode(errors="replace")


def _paths(store: str, db: int) -> list[str]:
    try:
        with os.scandir(os.path.join(store, DIRECTORY)) as entries:
            return [entry.path for entry in entries if entry.name.startswith(_start(db))]
    except OSError:
        return []


def _path(store: str, db: int, key: str) -> str:
    return os.path.join(store, DIRECTORY, _start(db) + sha256(key.encode()).hexdigest()[:32])


def _start(db: int) -> str:
    return f"{db}-"


def _locked(path: str, flags: int) -> Descriptor | None:
    """The file, locked; None if somebody else has it, or removes it just now.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        file = open_file(path, flags)
    except FileNotFoundError:
        return None  # who made it empty and has not locked it yet meets one who tidies up
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Not one that was removed before it was locked.
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None


_held: weakref.WeakSet[Life] = weakref.WeakSet()

_inherited: list[Descriptor] = []
"""In a spawned horse: the file of its worker."""


def _leave_in_child() -> None:
    for life in list(_held):
        life.leave_in_child()
    while _inherited:
        _inherited.pop().close()


os.register_at_fork(after_in_child=_leave_in_child)
