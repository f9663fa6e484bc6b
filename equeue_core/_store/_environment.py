"""One open store file: its transactions, and the one lock around each of them.

Every process takes an exclusive ``flock`` for a transaction (shared for reading) inside an
in-process gate; LMDB's own lock table is not used (see docs/decisions/kernel-lock.md). Three things
follow, and shape `Environment.transact`:

* An exception may arrive between any two bytecodes (a signal handler that raises, a time limit set
  by another thread). CPython looks for one only after a call has returned and where a loop or
  function begins, so a lock is taken as the first call of a ``try`` and given back as the first call
  of its ``finally``.
* A signal handler may itself use the store, in the middle of our transaction in the same thread. The
  gate is reentrant; the inner operation aborts the interrupted transaction, and the generation
  number tells the outer one to start over. It never leaves the lock held: the outer takes it again.
* No transaction outlives a call. Operations are functions of a transaction that change nothing
  outside it, so that they can be run again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import lmdb

from equeue_core._store import _apart, _ballast, _failures, _files, _format, _upgrade
from equeue_core._store._ballast import Ballast
from equeue_core._store._bells import Bells
from equeue_core._store._combine import (
    Combiner,
    Halfway,
    Operation,
    Request,
    added,
    commit_and_mark,
    error_of,
    run_all,
)
from equeue_core._store._owners import Owners
from equeue_core._store._queue_keys import Ledger
from equeue_core._store._roster import Roster
from equeue_core._store._txn import Txn, used_pages
from equeue_core.errors import EQueueError, QueueClosed, StoreBusy, StoreRemoved

_VIRTUAL_SIZE = 1 << 40
"""Bytes of address space asked for: so much that the map never has to grow. It is virtual and
sparse.
"""

_CHORES = 1000
"""Chores that are done in one transaction at most."""

_LOOK_EVERY = 0.05
"""Seconds of use between two looks whether the directory is still there."""

_getpid = os.getpid
_monotonic = time.monotonic
_flock = fcntl.flock
_EXCLUSIVE = fcntl.LOCK_EX
_SHARED = fcntl.LOCK_SH
_UNLOCK = fcntl.LOCK_UN
_NONE = (None,)


class Environment:
    """The one LMDB environment of this process on a store file, shared by all its handles.

    Attributes:
        directory: the store's real, absolute path.
        sync: the store's mode: ``full``, ``normal`` or ``off``.
        owners: this process's ownership locks.
        bells: what wakes blocked consumers.
        roster: the places of an adapter's clients.
        farewell: what an owner does before it goes: an operation that tells whether it is through.
        chores: what could not be done where it arose (in a destructor) and is done before the next
            operation: a function that makes an operation (or None), and its arguments. The operation
            changes nothing when it is run again.
    """

    def __init__(self, directory: str, sync: str | None, make: bool = True) -> None:
        self.directory = directory
        self._make = make
        self.sync = ""
        self.handles = 0
        self.farewell: Operation | None = None
        self.chores: deque[tuple[Any, ...]] = deque()
        self.add_chore = self.chores.append
        self._ledgers: dict[int, Ledger] = {}
        self._asked_sync = sync
        self._pid = os.getpid()
        self._gate = threading.RLock()
        self._generation = 0
        # The transaction in hand, if there is one. A list, because C code can append to it.
        self._txns: list[Txn] = []
        self._after: list[Callable[[], None]] = []
        self._opening = threading.Lock()
        self._is_open = False
        self._lmdb: lmdb.Environment | None = None
        self._lock_fd = -1
        self._look_again_at = 0.0
        self._owes = True
        self._combiner: Combiner | None = None
        self._ballast = Ballast(directory)
        self._begin: Callable[..., Txn]
        self.bells: Bells
        self.owners: Owners
        self.roster: Roster
        self.claimed_in: set[int]
        self._start_afresh()

    # Running operations

    def write(self, operation: Operation, adds: int = 0, patient: bool = True) -> Any:
        """Run `operation(txn)` in a write transaction and commit it; return its result.

        Parameters:
            operation: a function of the transaction that changes nothing else and raises an
                `EQueueError` only before it has written; it may be run several times.
            adds: about how many bytes of work it adds, which mode ``full`` flushes to the disk before
                this returns, and which may not use the space held back for completing jobs.
            patient: wait for the lock, as long as it takes.

        Raises:
            BlockingIOError: somebody else has the lock, and the caller is not patient.
            QueueClosed: the last handle was closed.
            DiskFull, QueueFull, QueueCorrupted: nothing was written.
        """
        self._catch_up(patient)
        if self._combiner is None or not patient:
            return self.transact(operation, adds, patient=patient)
        if self.is_in_hand():
            # A signal handler inside a transaction of this thread, for whose end a leader may wait:
            # it must not wait for a leader.
            result = self.transact(operation, adds)
            if adds:
                self.keep_promise()
            return result
        return self._combiner.submit(operation, adds)

    def write_all(self, operations: list[Operation], adds: int) -> None:
        """Run several operations in one transaction: all, or (if one is refused) none."""
        try:
            self.write(partial(_run_together, operations), adds)
        except Halfway as halfway:
            raise halfway.refusal from None

    def run_requests(self, requests: list[Request], patient: bool = True) -> None:
        """Run gathered operations in one transaction; results and refusals are left with the
        requests.

        Raises:
            BlockingIOError: somebody else has the lock, and the caller is not `patient`.
        """
        try:
            self._run_batch(requests, patient)
        except EQueueError as error:
            if len(requests) == 1:
                requests[0].error = error_of(error)
                return
            for request in requests:  # a full disk, say, which concerns some of them only
                self.run_requests([request])

    def _run_batch(self, requests: list[Request], patient: bool) -> None:
        self._catch_up(patient)
        self.transact(partial(run_all, requests), added(requests), patient=patient)
        if added(requests):
            self.keep_promise()

    def read(self, operation: Operation) -> Any:
        """Run `operation(txn)` in a read transaction and return its result."""
        self._catch_up()
        return self.transact(operation, lock=_SHARED)

    def is_in_hand(self) -> bool:
        """Whether this thread is in the midst of an operation: in a signal handler, or a destructor."""
        return self._gate._is_owned()  # type: ignore[attr-defined, no-any-return]

    def _catch_up(self, patient: bool = True) -> None:
        """What has to be done before any operation: notice a fork, and do the chores."""
        if self._pid != _getpid():
            self.after_fork()
        if self.chores:
            self._run_chores(patient)

    def transact(  # noqa: C901 - in one frame, for what the module says of exceptions
        self,
        operation: Operation,
        adds: int = 0,
        mark: Callable[[], None] | None = None,
        lock: int = _EXCLUSIVE,
        patient: bool = True,
    ) -> Any:
        """One transaction under the lock. `mark` is called in one step with the commit."""
        while True:
            gate = self._gate  # another one in a child that was forked in the middle of this
            try:
                if not gate.acquire(patient):
                    raise BlockingIOError("another thread is using the store")
                if not self._is_open or _monotonic() >= self._look_again_at:
                    self._look_around()
                # Numbered before the lock is taken: a handler that runs from here on makes us start
                # over.
                generation = self._generation = self._generation + 1
                if self._txns:
                    self._abort()
                self._after.clear()
                try:
                    _flock(self._lock_fd, lock if patient else lock | fcntl.LOCK_NB)
                    # No bytecode between begin and append: a handler in between could not abort it.
                    self._txns.extend(map(self._begin, _NONE, _NONE, (lock == _EXCLUSIVE,)))
                    if self._generation != generation or not (txns := self._txns[:]):
                        continue  # a handler's operation came in between; Python 3.10 looks after a jump, too
                    txn = txns[-1]
                    if adds:
                        self.require_room(txn, adds)
                    result = operation(txn)
                    settled = adds and self._promise(txn)
                    if mark is None:
                        txn.commit()
                    else:
                        commit_and_mark(txn, mark)
                    self._txns.clear()
                    if settled:
                        settled()
                    if self._after:
                        self._run_after()
                    return result
                except BaseException as error:
                    if self._starts_over(error, generation, adds):
                        continue
                    raise
                finally:
                    if self._lock_fd >= 0:
                        _flock(self._lock_fd, _UNLOCK)
            finally:
                try:
                    gate.release()
                except RuntimeError:  # interrupted while waiting for it
                    pass

    def _look_around(self) -> None:
        """Open if need be; notice that the directory was deleted: work put into deleted files is lost."""
        if not self._is_open:
            self._open()
        self._look_again_at = _monotonic() + _LOOK_EVERY
        if os.fstat(self._lock_fd).st_nlink == 0:
            self._look_again_at = 0.0
            raise StoreRemoved(
                f"the store at {self.directory} was removed while it was in use: restart this process, or "
                "close the handle and make a new one"
            )

    def ledger(self, queue_id: int) -> Ledger:
        """The keys of a queue."""
        return self._ledgers.get(queue_id) or self._ledgers.setdefault(
            queue_id, Ledger(self, queue_id)
        )

    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` made once the running transaction is committed, still under the lock."""
        self._after.append(call)

    def _promise(self, txn: Txn) -> Callable[[], None] | None:
        """Note, before a commit that adds work, that it is to be flushed; what to call afterwards: nothing
        is owed for a commit that has turned out to change nothing.
        """
        if self.sync != "full" or self._owes:
            return None
        self._owes = True
        number = txn.id()

        def settle() -> None:
            if self._lmdb is not None and self._lmdb.info()["last_txnid"] < number:
                self._owes = False

        return settle

    def keep_promise(self) -> None:
        """After a commit that added work: force it to the disk if the mode is ``full``.

        The commit itself has flushed the data, not the page that points to it.
        """
        if self.sync != "full":
            return
        with self._gate:
            if self._lmdb is not None and self._owes:
                try:
                    self._lmdb.sync(True)
                    self._owes = False
                except lmdb.Error as error:
                    raise _failures.translate(error, self.directory) from error

    def require_room(self, txn: Txn, adds: int) -> None:
        """Refuse to add so many bytes when what room is left is needed for completing jobs.

        Raises:
            DiskFull: it is.
        """
        self._ballast.count(adds)
        if not self._ballast.spent:
            return
        assert self._lmdb is not None
        used, size = used_pages(txn)
        free = (self._lmdb.info()["last_pgno"] + 1 - used) * size
        if free < adds + _ballast.SIZE:
            raise _failures.disk_full(self.directory)

    def _starts_over(self, error: BaseException, generation: int, adds: int) -> bool:
        """Clean up after a failed transaction. True: run it again. Raises the engine's error for
        LMDB's.
        """
        self._after.clear()
        self._abort()
        if not isinstance(error, lmdb.Error):
            return False
        if self._generation != generation:
            return True  # a signal handler's operation aborted this transaction
        if isinstance(error, lmdb.PanicError):
            # LMDB refuses the environment after a failed write of a meta page; a fresh one is sound.
            self._close_lmdb()
        if _failures.is_disk_full(error) and not adds and self._ballast.drop():
            return True
        raise _failures.translate(error, self.directory) from error

    def _abort(self) -> None:
        """Abort the transaction in hand; harmless if it is finished."""
        while self._txns:
            try:
                self._txns[-1].abort()
            except lmdb.Error:
                pass
            # Only now: what interrupts this leaves the transaction to the next one who comes.
            self._txns.clear()

    def _run_after(self) -> None:
        calls, self._after = self._after, []
        for call in calls:
            call()

    def _run_chores(self, patient: bool = True) -> None:
        chores = []
        for number in range(min(len(self.chores), _CHORES)):
            # By number, because destructors and other threads change the deque meanwhile.
            try:
                chores.append(self.chores[number])
            except IndexError:
                break
        made = [chore[0](*chore[1:]) for chore in chores]
        operations = [operation for operation in made if operation is not None]
        if operations:
            self.transact(partial(_run_each, operations), patient=patient)
        for chore in chores:
            try:
                # Only now: if an exception or another thread comes in between, it is run twice.
                self.chores.remove(chore)
            except ValueError:
                pass

    # Opening and closing

    def open(self) -> None:
        """Open the store now instead of at the first operation."""
        if self._is_open:
            return
        with self._gate:
            if not self._is_open:
                self._open()

    def _open(self) -> None:
        if self.handles == 0:
            raise QueueClosed(f"the store at {self.directory} is closed")
        # A handler that uses the store in the middle of this would wait for the lock held here.
        _apart.run(self._open_now)

    def _open_now(self) -> None:
        with self._opening:
            if self._is_open:
                return
            if self.handles == 0:  # it was closed while this thread began
                raise QueueClosed(f"the store at {self.directory} is closed")
            if self._lock_fd < 0:
                self._lock_fd = _files.open_file(self.directory, _files.LOCK)
            _flock(self._lock_fd, _EXCLUSIVE)
            try:
                self._open_data(self._lock_fd)
                self._show_presence()
                self._is_open = True
            except BaseException:
                os.close(self._lock_fd)
                self._lock_fd = -1
                raise
            _flock(self._lock_fd, _UNLOCK)
            self._ballast.make()

    def _show_presence(self) -> None:
        try:
            self.owners.open()
        except BlockingIOError as error:
            raise StoreBusy(
                f"another process has the store at {self.directory} for itself: try again"
            ) from error
        except OSError as error:
            raise _files.access_error(self.directory, error) from error

    def _open_data(self, lock_fd: int) -> None:
        data_fd = _files.open_file(self.directory, _files.DATA, self._make)
        try:
            _files.check_data_file(self.directory, lock_fd, data_fd)
            is_new = self._make or os.fstat(data_fd).st_size == 0
        finally:
            os.close(data_fd)
        try:
            self._open_lmdb(lock_fd, is_new)
        except lmdb.Error as error:
            self._close_lmdb()
            raise _failures.translate(error, self.directory) from error
        except BaseException:
            self._close_lmdb()
            raise

    def _open_lmdb(self, lock_fd: int, may_be_new: bool = False) -> None:
        # The mode is known only once the store has been read: guess, and open again if the guess
        # was wrong. In a forked child, and at any later opening, it is most likely the same again.
        sync = self._asked_sync or self.sync or "full"
        self._lmdb = self._open_map(sync)
        with self._lmdb.begin(write=True) as txn:
            record = _format.read_format(txn, self.directory)
            if record is None:
                if not may_be_new:
                    # What was there when it was looked at is another file now, which LMDB has made.
                    raise StoreRemoved(f"the store at {self.directory} was removed")
                record = _format.new_format(self._asked_sync or "full")
                _format.write_format(txn, record)
            elif record["format"] < _format.FORMAT_NUMBER:
                record = _upgrade.upgrade(txn, record)
                _format.write_format(txn, record)
        if record["sync"] != sync:
            _format.check_sync(self._asked_sync, record["sync"], self.directory)
            self._lmdb.close()
            self._lmdb = self._open_map(record["sync"])
        self.sync = record["sync"]
        if os.fstat(lock_fd).st_size == 0:
            self._lmdb.sync(True)
            _files.mark_in_use(lock_fd)
            _files.sync_directory(self.directory)
        self._begin = self._lmdb.begin
        self._combiner = Combiner(self) if self.sync != "off" else None

    def _open_map(self, sync: str) -> lmdb.Environment:
        size = _VIRTUAL_SIZE
        while True:
            try:
                return lmdb.open(
                    self.directory,
                    map_size=size,
                    mode=0o600,
                    lock=False,
                    sync=sync != "off",
                    metasync=False,
                    readahead=False,
                    meminit=False,
                    max_spare_txns=1,
                )
            except (lmdb.MemoryError, MemoryError, OverflowError):
                size //= 2
                if size < 1 << 20:
                    raise

    def say_farewell(self) -> None:
        """Give back what this process still holds, so that going is not taken for a crash."""
        if self.farewell is not None and self.owners.owner_id is not None:
            with contextlib.suppress(StoreRemoved):
                while not self.write(self.farewell):
                    pass

    def close(self) -> None:
        """Close; a later operation opens again as long as there are handles."""
        # An opening goes on in its own thread even if who wanted it was interrupted.
        with self._gate, self._opening:
            self._abort()
            self._close_lmdb()
            self.owners.close()
            self.bells.close()
            self.roster.close()
            self._start_afresh()

    def _close_lmdb(self) -> None:
        self._is_open = False
        if self._lmdb is not None:
            self._lmdb.close()
            self._lmdb = None

    def _start_afresh(self) -> None:
        """Be nobody, and hold nothing open, until the next opening."""
        # Closed without unlocking: after a fork the lock is on the open file that the parent goes on using.
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
        self.claimed_in = set()
        bells = os.path.join(self.directory, _files.BELLS)
        self.bells = Bells(bells)
        self.owners = Owners(os.path.join(self.directory, _files.OWNERS), bells)
        self.roster = Roster(os.path.join(self.directory, _files.CLIENTS))

    # Working on the file as a whole

    def size(self) -> int:
        """Bytes of the data file."""
        return os.path.getsize(os.path.join(self.directory, _files.DATA))

    def copy(self, destination: str, name: str) -> None:
        """Write a compacted, consistent copy of the data file into the directory `destination`.

        Parameters:
            destination: the directory.
            name: what an error calls it.

        Raises:
            DiskFull: its disk is full, which may be another one than the store's.
        """

        def run(txn: Txn) -> None:
            try:
                self._copy(destination)
            except lmdb.Error as error:
                # Not for `transact`, which would make room on the store's disk and try again.
                raise _failures.copy_failed(error, name) from error

        self.transact(run, lock=_SHARED)

    def _copy(self, destination: str) -> None:
        assert self._lmdb is not None
        self._lmdb.copy(destination, compact=True)

    def verify_pages(self) -> list[str]:
        """What LMDB's own verifier says of the file's pages."""
        path = os.path.join(self.directory, _files.DATA)
        problems: list[str] = self.transact(lambda txn: _failures.verify(path), lock=_SHARED)
        return problems

    def exclusively(self, work: Callable[[], None], copy_to: str | None = None) -> None:
        """Run `work` with the environment closed and every other process kept out.

        Parameters:
            work: what to do with the file.
            copy_to: a directory that first gets a compacted copy of the data file.

        Raises:
            StoreBusy: another process has the store open.
        """
        with self._gate:
            self.open()
            try:
                # The lock first: who is opening the store holds it until its presence shows.
                _flock(self._lock_fd, _EXCLUSIVE)
                with self.owners.exclusive_presence():
                    self._abort()
                    if copy_to is not None:
                        self._copy(copy_to)
                    self._close_lmdb()
                    try:
                        work()
                    finally:
                        self._open_lmdb(self._lock_fd)
                        self._is_open = True
            except BlockingIOError as error:
                raise StoreBusy(
                    f"another process has the store at {self.directory} open: stop it first"
                ) from error
            except lmdb.Error as error:
                raise _failures.translate(error, self.directory) from error
            finally:
                _flock(self._lock_fd, _UNLOCK)

    def reconfigure(self, sync: str, write: Callable[[Txn], None]) -> None:
        """Change the stored options by `write`, and open again with them."""

        def work() -> None:
            # A passing environment that flushes at its commit, whatever the modes before and after.
            passing = self._open_map("full")
            try:
                with passing.begin(write=True) as txn:
                    write(txn)
                passing.sync(True)
            finally:
                passing.close()
            self._asked_sync = sync

        self.exclusively(work)

    # Fork

    def before_fork(self) -> None:
        """Let no transaction be open in any other thread at the moment of the fork."""
        self._gate.acquire()
        self._opening.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._opening.release()
        self._gate.release()

    def after_fork(self) -> None:
        """In the child: forget what belongs to the parent; everything is opened again at the next
        use.
        """
        self._pid = os.getpid()
        self._gate = threading.RLock()
        self._opening = threading.Lock()
        self._generation += 1
        self._combiner = None
        self._after = []
        self.chores.clear()
        self._abort()
        self._close_lmdb()
        self.owners.drop()
        self.bells.drop()
        self.roster.close()
        self._start_afresh()


def _run_each(operations: list[Operation], txn: Txn) -> None:
    for operation in operations:
        operation(txn)


def _run_together(operations: list[Operation], txn: Txn) -> None:
    for number, operation in enumerate(operations):
        try:
            operation(txn)
        except EQueueError as refusal:
            if number == 0:
                raise
            raise Halfway(refusal) from refusal
