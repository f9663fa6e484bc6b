"""Looking at a store as a whole, and looking after it: owners, backup, check, compact."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from equeue_core import _admin, _check
from equeue_core._store import _files, _format, _registry
from equeue_core._store._names import all_queues
from equeue_core._store._ownership import owner_rows
from equeue_core._store._permissions import hand_over
from equeue_core.errors import DiskFull, StoreAccessError

if TYPE_CHECKING:
    from equeue_core._store import Environment, Txn


PARTIAL = "partial"
"""Where a backup is made before it is complete."""

COMPACTED = "compact"
"""Where, in the store's directory, the compacted data is made."""


@dataclass(frozen=True)
class Owner:
    """A live process that claims jobs.

    Attributes:
        owner_id: its number in the store, never used again.
        pid: its process id, as it sees itself (in its own pid namespace).
        host: its host or container name.
        since: when it first claimed, in epoch seconds.
    """

    owner_id: int
    pid: int
    host: str
    since: float


@dataclass(frozen=True)
class CheckReport:
    """What `Store.check` found.

    Attributes:
        problems: one sentence for each contradiction.
        queues: how many queues were walked through.
        jobs: how many jobs.
    """

    problems: list[str] = field(default_factory=list)
    queues: int = 0
    jobs: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


def all_stats(environment: Environment) -> dict[str, dict[str, int]]:
    """The counters of every queue, by name."""

    def run(txn: Txn) -> dict[str, dict[str, int]]:
        return {
            name: _admin.count(txn, environment.ledger(queue_id))
            for queue_id, name in all_queues(txn)
        }

    counted: dict[str, dict[str, int]] = environment.read(run)
    return counted


def recorded_owners(txn: Txn) -> list[Owner]:
    """The owners that have a record: those that live, and dead ones whose jobs were not yet given back."""
    return [
        Owner(owner_id, row["pid"], row["host"], row["since"]) for owner_id, row in owner_rows(txn)
    ]


def live_owners(environment: Environment) -> list[Owner]:
    """The owners whose lock is held."""

    def run(txn: Txn) -> list[Owner]:
        is_alive = environment.owners.is_alive
        return [owner for owner in recorded_owners(txn) if is_alive(owner.owner_id)]

    owners: list[Owner] = environment.read(run)
    return owners


def backup(environment: Environment, destination: str) -> None:
    """See ``Store.backup``."""
    environment.open()
    # Made under another directory and moved at the end: half a copy must not be taken for a backup.
    partial_copy = os.path.join(destination, PARTIAL)
    shutil.rmtree(partial_copy, ignore_errors=True)
    is_new = not os.path.lexists(destination)
    try:
        is_empty = _files.is_empty_directory(destination)
    except OSError as error:
        raise _files.access_error(destination, error) from error
    if not is_empty:
        raise StoreAccessError(f"{destination!r} is not an empty directory: back up to a new one")
    try:
        os.makedirs(partial_copy, mode=0o700, exist_ok=True)
    except OSError as error:
        raise _files.access_error(destination, error) from error
    try:
        environment.copy(partial_copy, destination)
        copied = os.path.join(partial_copy, _files.DATA)
        os.chmod(copied, 0o600)
        _files.sync_file(copied)
        os.rename(copied, os.path.join(destination, _files.DATA))
        _files.sync_directory(destination)
    finally:
        shutil.rmtree(partial_copy, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):  # it has the copy
                os.rmdir(destination)  # else somebody would take it for one


def check(environment: Environment) -> CheckReport:
    """See ``Store.check``."""
    problems, queues, jobs = environment.read(partial(_check.walk, environment=environment))
    return CheckReport(problems + environment.verify_pages(), queues, jobs)


def compact(environment: Environment) -> tuple[int, int]:
    """See ``Store.compact``."""
    data = os.path.join(environment.directory, _files.DATA)
    work = os.path.join(environment.directory, COMPACTED)
    before = environment.size()

    def swap() -> None:
        os.replace(os.path.join(work, _files.DATA), data)
        os.chmod(data, 0o600)
        hand_over(data)
        _files.sync_directory(environment.directory)

    shutil.rmtree(work, ignore_errors=True)
    try:
        os.mkdir(work, 0o700)
        environment.exclusively(swap, copy_to=work)
    except OSError as error:
        if isinstance(error, DiskFull):
            raise
        raise _files.access_error(environment.directory, error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _registry.rekey(environment)
    return before, environment.size()


def change_sync(environment: Environment, mode: str) -> None:
    """Store another durability; every process opens the store anew with it."""

    def write(txn: Txn) -> None:
        record = _format.read_format(txn, environment.directory)
        assert record is not None
        _format.write_format(txn, {**record, "sync": mode})

    environment.reconfigure(mode, write)
