"""Who is alive: each process that claims holds a lock, which the kernel drops at its death.

An owner locks the byte at its own number in the owners file; any process, in any pid namespace,
can ask the kernel whether that byte is locked. The lock is the truth. That somebody died is also
an event: each owner holds a FIFO open for writing (its life FIFO), and those who watch it see a
hang-up when it is gone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from equeue_core._store import _owner_locks
from equeue_core._store._bell_descriptor import Descriptor, open_fifo, open_file
from equeue_core._store._gevent import original
from equeue_core._store._wait_poller import NapPoller, Poller, best_poller

WATCHED = 256
"""Owners whose life FIFOs are watched at most; the death of another shows when its lock is
probed."""

_sleep = original("time", "sleep")  # under the store's lock
_PRESENCE = 0
_PATIENCE = (0.0, 0.00005, 0.0001, 0.0002)
"""Seconds between looks at the lock of an owner that hung up: the kernel closes one file after the
other."""


class Owners:
    """The owners of one store, as one process sees them.

    A forked child shares the open files of its parent, and with them the lock and the life FIFO:
    call `drop` first thing in the child. A child that a C library forked, and that goes on without
    calling it (nor exec), keeps its parent's owner alive as long as it lives itself.

    Calls must not overlap, except that `is_alive` may be called at any time.

    Attributes:
        owner_id: this process's own number; None before `become`.
        watch_fd: readable while `dead` would return something new; -1 if the platform has no such
            descriptor. It stays the same until `close`.
    """

    def __init__(
        self, path: str, directory: str, poller: Callable[[], Poller] | None = None
    ) -> None:
        """Nothing is opened or made before `open`.

        Parameters:
            path: the owners file; made with mode 0600 if missing.
            directory: where the life FIFOs are; made with mode 0700 if missing.
            poller: makes what watches them; default: the best that the platform has.
        """
        self.path = path
        self.directory = directory
        self.owner_id: int | None = None
        self._make_poller = poller or best_poller()
        self._has_fifos = self._make_poller is not NapPoller
        self._poller: Poller | None = None
        self._file: Descriptor | None = None
        self._trying: int | None = None
        self._life: Descriptor | None = None
        self._outlasting: Descriptor | None = None
        self._watched: dict[int, Descriptor] = {}
        self._unheard: set[int] = set()

    # This process

    def open(self) -> None:
        """Be present: hold the shared lock that tells others that this process has the store open.

        Call it under the store's lock, as those do who want the store for themselves. Harmless if
        repeated.

        Raises:
            BlockingIOError: another process has the store for itself.
        """
        if self._file is None:
            if self._poller is None:
                self._poller = self._make_poller()
            file = open_file(self.path, os.O_RDWR | os.O_CREAT)
            _owner_locks.lock(file.fileno(), _PRESENCE, shared=True)
            self._file = file

    def become(self, owner_id: int) -> None:
        """Take the lock of `owner_id`, never used before, and show that this process is alive.

        Raises:
            BlockingIOError: another process holds that lock.
            ValueError: the number is out of range, or this process is an owner already.
        """
        if not 1 <= owner_id <= 1 << 62:
            raise ValueError(f"an owner's number is between 1 and 2**62, not {owner_id}")
        if self.owner_id is not None:
            raise ValueError(f"this process is owner {self.owner_id} already")
        number = self._number()
        self._undo_attempt(number)
        self._trying = owner_id
        _owner_locks.lock(number, owner_id)
        # The life FIFO only speeds things up: a full disk, which has no room for it, is no
        # obstacle.
        if self._has_fifos:
            with contextlib.suppress(OSError):
                self._life = open_fifo(self._life_path(owner_id), os.O_RDWR)
                self._outlasting = _owner_locks.twin_above(number, self._life.fileno())
        self.owner_id = owner_id
        self._trying = None

    def _undo_attempt(self, number: int) -> None:
        """Give back what `become` took before an exception ended it."""
        tried = self._trying
        if tried is not None:
            _owner_locks.unlock(number, tried)
            if not _owner_locks.is_locked(number, tried):
                self._remove(tried)

    def others_present(self) -> bool:
        """Whether another process has the store open."""
        return _owner_locks.is_locked(self._number(), _PRESENCE)

    @contextlib.contextmanager
    def exclusive_presence(self) -> Iterator[None]:
        """Have the store for this process alone; call it under the store's lock.

        Raises:
            BlockingIOError: another process has the store open.
        """
        number = self._number()
        try:
            _owner_locks.lock(number, _PRESENCE)
            yield
        finally:
            _owner_locks.lock(number, _PRESENCE, shared=True)

    # The others

    def is_alive(self, owner_id: int) -> bool:
        """Whether the owner's lock is held; True for this process's own."""
        return owner_id == self.owner_id or _owner_locks.is_locked(self._number(), owner_id)

    @property
    def watch_fd(self) -> int:
        """See the class."""
        return self._watch().fileno()

    def watch(self, owner_ids: Iterable[int]) -> None:
        """Watch these owners and no others; this process's own number is passed over.

        Only the first `WATCHED` can be told by an event. One whose life FIFO is missing cannot,
        either:
        `dead` asks for its lock each time.
        """
        wanted = [owner_id for owner_id in dict.fromkeys(owner_ids) if owner_id != self.owner_id]
        for gone in self._watched.keys() - set(wanted):
            self._unwatch(gone)
        self._unheard.intersection_update(wanted)
        for owner_id in wanted[:WATCHED]:
            if owner_id not in self._watched:
                self._listen(owner_id)

    def has_unheard_death(self) -> bool:
        """Whether an owner died that no event will tell of: `dead` has it, without a wait."""
        return any(not self.is_alive(owner_id) for owner_id in self._unheard)

    def dead(self) -> list[int]:
        """The watched owners that died; each is returned once, and is then watched no longer."""
        found = [owner_id for owner_id in self._unheard if not self.is_alive(owner_id)]
        self._unheard.difference_update(found)
        ready = self._watch().wait(0)
        if ready:
            for owner_id, life in list(self._watched.items()):
                if life.fileno() in ready:
                    self._unwatch(owner_id)
                    if not self._is_gone(owner_id):
                        self._unheard.add(owner_id)  # and tell again when its lock is free
                    found.append(owner_id)
        return found

    def forget(self, owner_id: int) -> None:
        """Remove what a dead owner left in the file system [lock held]."""
        self._unheard.discard(owner_id)
        self._unwatch(owner_id)
        self._remove(owner_id)

    def _watch(self) -> Poller:
        if self._poller is None:
            self.open()
        assert self._poller is not None
        return self._poller

    def _listen(self, owner_id: int) -> None:
        if not self._has_fifos:
            self._unheard.add(owner_id)
            return
        try:
            life = open_file(self._life_path(owner_id), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            self._unheard.add(owner_id)
            return
        self._watched[owner_id] = life
        self._watch().add(life.fileno())
        if not self.is_alive(owner_id):
            # It was dead before the FIFO was opened, which therefore will not tell.
            self._unwatch(owner_id)
            self._unheard.add(owner_id)

    def _unwatch(self, owner_id: int) -> None:
        life = self._watched.get(owner_id)
        if life is not None:
            self._watch().remove(life.fileno())
            del self._watched[owner_id]
            life.close()

    def _is_gone(self, owner_id: int) -> bool:
        for seconds in _PATIENCE:
            _sleep(seconds)
            if not self.is_alive(owner_id):
                return True
        return False

    # The end

    def close(self) -> None:
        """Be an owner and present no longer."""
        owner_id, self.owner_id = self.owner_id, None
        if self._file is not None and owner_id is not None:
            # Before the FIFO, so that who sees the hang-up finds the lock free.
            _owner_locks.unlock(self._file.fileno(), owner_id)
            self._remove(owner_id)
        self.drop()

    def drop(self) -> None:
        """In a forked child: close what was inherited; the locks stay with the parent."""
        self.owner_id = None
        # Not unlocked: lock and open file are the parent's too.
        mine = (self._file, self._outlasting, self._life)
        for descriptor in (*mine, *self._watched.values()):
            if descriptor is not None:
                descriptor.close()
        self._file = self._outlasting = self._life = None
        self._watched.clear()
        self._unheard.clear()
        poller, self._poller = self._poller, None
        if poller is not None:
            poller.close()

    def _number(self) -> int:
        if self._file is None:
            self.open()
        assert self._file is not None
        return self._file.fileno()

    def _life_path(self, owner_id: int) -> str:
        return os.path.join(self.directory, f"life-{owner_id}")

    def _remove(self, owner_id: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._life_path(owner_id))
