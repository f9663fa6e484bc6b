"""As much of a store as the bells need: a lock, a number of jobs, and consumers that sleep."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from equeue_core._store._bell_counts import GENERATION
from equeue_core._store._bell_descriptor import bytes_waiting
from equeue_core._store._bells import Bells, Waiter, jobs_slot
from equeue_core._store._owners import Owners
from equeue_core._store._wait_poller import Poller
from tests.core._forked import Line

QUEUE = 1
_PUT, _CLAIMED = 0, 1
_SLEEPING = 8  # and the cells after it, one for each owner


class StoreLock:
    """The lock around each transaction."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *exception: object) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)


class Board:
    """Numbers that forked processes share. Each is changed under the store's lock."""

    def __init__(self) -> None:
        self._cells = memoryview(mmap.mmap(-1, 1 << 16)).cast("q")

    @property
    def ready(self) -> int:
        return self._cells[_PUT] - self._cells[_CLAIMED]

    def put(self, n: int = 1) -> None:
        self._cells[_PUT] += n

    def claim(self) -> bool:
        if not self.ready:
            return False
        self._cells[_CLAIMED] += 1
        return True

    def sleeps(self, owner_id: int, since: int | None) -> None:
        """Note who sleeps, and since which generation (see `Bells.reset`); None: it does not."""
        self._cells[_SLEEPING + owner_id] = 0 if since is None else since + 1

    def sleepers(self, owner_ids: list[int], generation: int) -> int:
        return [self._cells[_SLEEPING + owner_id] for owner_id in owner_ids].count(generation + 1)


class Handle:
    """One process's use of the store. To be made after the fork."""

    def __init__(
        self, directory: Path, board: Board, poller: Callable[[], Poller] | None = None
    ) -> None:
        bell = os.fspath(directory / "bell")
        self.lock = StoreLock(directory)
        self.board = board
        self.bells = Bells(bell, poller)
        self.owners = Owners(os.fspath(directory / "owners"), bell, poller)
        self._bell_directory = Path(bell)

    def join(self, owner_id: int) -> Waiter:
        """Become an owner, and make a waiter for the jobs."""
        with self.lock:
            self.owners.open()
            self.owners.become(owner_id)
            self.bells.broadcast(0)
        return self.bells.waiter(jobs=(QUEUE,), extra_fd=self.owners.watch_fd)

    def put(self, n: int = 1) -> None:
        with self.lock:
            self.board.put(n)
            self.bells.ring(QUEUE, n)

    def look(self, waiter: Waiter) -> bool:
        """Claim a job, or be registered as a sleeper."""
        owner_id = self.owners.owner_id
        assert owner_id is not None
        with self.lock:
            self.owners.dead()
            found = self.board.claim()
            # Cleared before and set after, so that the board never names more than the bells know.
            self.board.sleeps(owner_id, None)
            waiter.settle()
            if found:
                waiter.leave()
            else:
                waiter.register()
                self.board.sleeps(owner_id, self.generation())
                self.owners.watch(self._everyone())
        return found

    def _everyone(self) -> list[int]:
        names = os.listdir(self._bell_directory)
        return [int(name[5:]) for name in names if name.startswith("life-")]

    def tokens(self) -> int:
        return bytes_waiting(self.bells.token(jobs_slot(QUEUE)))

    def count(self) -> int:
        return self.bells.counts()[jobs_slot(QUEUE)]

    def generation(self) -> int:
        return self.bells.counts()[GENERATION]

    def close(self) -> None:
        self.bells.close()
        self.owners.close()
        self.lock.close()


def consume(
    line: Line,
    directory: Path,
    board: Board,
    owner_id: int,
    poller: Callable[[], Poller] | None = None,
) -> None:
    """Take jobs for ever, and say so. It never wakes by a clock: a lost wake-up is lost for good."""
    handle = Handle(directory, board, poller)
    waiter = handle.join(owner_id)
    line.say("here")
    while True:
        if handle.look(waiter):
            line.say("job")
        else:
            waiter.wait(None)


def consume_slowly(
    line: Line,
    directory: Path,
    board: Board,
    owner_id: int,
    poller: Callable[[], Poller] | None = None,
) -> None:
    """The same, but tell each waking and ask what to do: `look` for a job, or `leave` without a look."""
    handle = Handle(directory, board, poller)
    waiter = handle.join(owner_id)
    handle.look(waiter)
    line.say("here")
    while True:
        waiter.wait(None)
        line.say("awake")
        if line.hear() == "leave":
            with handle.lock:
                handle.board.sleeps(owner_id, None)
                waiter.leave()
            waiter.close()
            line.say("left")
            return
        line.say("job" if handle.look(waiter) else "none")
