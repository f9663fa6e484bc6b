"""Which environments this process has: one for each store file, whatever path leads to it.

LMDB must not open a file twice in a process, so handles share. An environment is known by the
device and inode of its data file, hence a symlink, a relative path and a hard link find the same
one. The hooks here carry environments across ``fork`` and give claimed jobs back when the
interpreter ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

from equeue_core._store import _apart, _files
from equeue_core._store._environment import Environment
from equeue_core._store._format import check_sync

_lock = threading.RLock()
_environments: dict[tuple[int, int], Environment] = {}
_ending: list[Environment] = []
"""Those that are about to be closed, which waits for the operations of other threads."""


def lock() -> threading.RLock:
    """What a handle holds while it is opened or closed. No thread holds it in a forked child."""
    return _lock


def acquire(path: str, sync: str | None, allow_network_fs: bool) -> Environment:
    """The process's environment for the store at `path`, made (and its directory) if need be.

    Each call counts as one handle; pair it with `release`.
    """
    with _lock:
        directory = _files.prepare_directory(path, allow_network_fs)
        make = _files.may_make()
        key = _identity(directory, make)
        # Known before it is open: a signal handler that comes in between has to find it.
        environment = _environments.get(key) or _environments.setdefault(
            key, Environment(directory, sync, make)
        )
        environment.handles += 1
    try:
        # Without the lock: a signal handler of the thread that works in the environment may want it.
        environment.open()
        check_sync(sync, environment.sync, directory)
    except BaseException:
        with _lock:
            environment.handles -= 1
            if environment.handles == 0:
                _end(environment)
        raise
    return environment


def release(environment: Environment) -> None:
    """Give up one handle; the last one gives claimed jobs back and closes the environment."""
    with _lock:
        if environment.handles == 1:
            try:
                environment.say_farewell()
            finally:
                environment.handles = 0
                _end(environment)
        elif environment.handles > 1:
            environment.handles -= 1


def in_operation() -> bool:
    """Whether this thread is in the midst of an operation of some store: in a signal handler, or in a
    destructor. To close a store there could wait for another thread that waits for this one.
    """
    return (
        _apart.is_here()
        or _lock._is_owned()  # type: ignore[attr-defined]
        or any(each.is_in_hand() for each in [*_environments.values(), *_ending])
    )


def has(device: int, inode: int) -> bool:
    """Whether this process has the data file of these numbers open."""
    return (device, inode) in _environments


def rekey(environment: Environment) -> None:
    """Note that the environment's data file was replaced."""
    with _lock:
        _forget(environment)
        _environments[_identity(environment.directory, True)] = environment


def _end(environment: Environment) -> None:
    _ending.append(environment)
    try:
        _forget(environment)
        environment.close()
    finally:
        _ending.remove(environment)


def _forget(environment: Environment) -> None:
    for key in [key for key, value in _environments.items() if value is environment]:
        del _environments[key]


def _identity(directory: str, make: bool) -> tuple[int, int]:
    """The data file's device and inode; if need be it is made (empty), so that it has them."""
    descriptor = _files.open_file(directory, _files.DATA, make)
    try:
        state = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return state.st_dev, state.st_ino


def _before_fork() -> None:
    _lock.acquire()
    for environment in _environments.values():
        environment.before_fork()


def _after_fork_in_parent() -> None:
    for environment in _environments.values():
        environment.after_fork_in_parent()
    with contextlib.suppress(RuntimeError):
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for environment in _environments.values():
        environment.after_fork()
    _farewell.hook()


class _Farewell:
    """Has `_at_exit` called in children of ``multiprocessing``, which end with ``os._exit``."""

    def __init__(self) -> None:
        self._is_hooked = False

    def hook(self) -> None:
        """Once it is known that ``multiprocessing`` is used, and before the child's own work begins."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._is_hooked:
            self._is_hooked = True
            # A child forgets all finalizers that there are when it starts, and calls these functions then.
            util.register_after_fork(self, _Farewell._be_last)
            if sys.modules["multiprocessing.process"].parent_process() is not None:
                self._be_last()  # it has started: the store was imported by its work

    def _be_last(self) -> None:
        from multiprocessing.util import Finalize

        # After -5, at which it waits for the threads of its multiprocessing.Queue.
        Finalize(None, _at_exit, exitpriority=-10)


_farewell = _Farewell()


def _at_exit() -> None:
    """Give jobs still in hand back, so that the exit does not count as a crash.

    Not while daemon threads run on: one of them may be working on such a job until the very end.
    """
    if threading.active_count() > 1:
        return
    for environment in list(_environments.values()):
        with contextlib.suppress(Exception):
            environment.say_farewell()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
atexit.register(_at_exit)
_farewell.hook()
