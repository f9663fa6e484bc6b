"""Every error that the engine raises.

::

    EQueueError
    ├── QueueEmpty          (also queue.Empty)
    ├── QueueFull           (also queue.Full)
    │   └── DiskFull        (also OSError)
    ├── QueueClosed
    ├── QueueCorrupted
    │   └── ClaimLost
    ├── JobNotFound         (also LookupError)
    ├── JobStateError
    ├── DuplicateJob
    ├── JobFailed
    ├── JobCancelled
    ├── ResultTimeout       (also TimeoutError)
    ├── JoinTimeout         (also TimeoutError)
    ├── PayloadError        (also TypeError)
    ├── TransactionError
    └── StoreError
        ├── StoreOptionError        (also ValueError)
        ├── StoreVersionError
        ├── ForeignStoreError
        ├── StoreAccessError        (also OSError)
        ├── NetworkFileSystemError
        ├── StoreRemoved
        └── StoreBusy

Invalid arguments (a negative delay, a name that is not a string) raise the built-in ``ValueError`` or
``TypeError``, as Python's own containers do.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equeue_core._job import Job

__all__ = [
    "ClaimLost",
    "DiskFull",
    "DuplicateJob",
    "EQueueError",
    "ForeignStoreError",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobStateError",
    "JoinTimeout",
    "NetworkFileSystemError",
    "PayloadError",
    "QueueClosed",
    "QueueCorrupted",
    "QueueEmpty",
    "QueueFull",
    "ResultTimeout",
    "StoreAccessError",
    "StoreBusy",
    "StoreError",
    "StoreOptionError",
    "StoreRemoved",
    "StoreVersionError",
    "TransactionError",
]


class EQueueError(Exception):
    """Root of every error that the engine raises on its own account."""


class QueueEmpty(EQueueError, queue.Empty):
    """No job came within the timeout of a ``get``."""


class QueueFull(EQueueError, queue.Full):
    """The store's size limit (``map_size``) is reached: nothing was put.

    Claiming, completing and deleting go on, and make room.
    """


class DiskFull(QueueFull, OSError):
    """The file system has no room for the operation: nothing was written."""


class QueueClosed(EQueueError):
    """The handle, or its store, was closed."""


class QueueCorrupted(EQueueError):
    """What is on disk contradicts itself, or a completion was refused (see `ClaimLost`)."""


class ClaimLost(QueueCorrupted):
    """This record no longer holds its job: it was completed, given back, or its lease ran out.

    Nothing was changed. It derives from `QueueCorrupted` because lmdb-queue raises that for both.
    """


class JobNotFound(EQueueError, LookupError):
    """No job with this id is in the queue: it never was, or it was vacuumed or purged."""


class JobStateError(EQueueError):
    """The job exists but its state does not allow the operation."""


class DuplicateJob(EQueueError):
    """A live job with the same unique key exists.

    Attributes:
        job_id: the id of that job.
    """

    def __init__(self, message: str, job_id: int = 0) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobFailed(EQueueError):
    """The job whose result was asked for is FAILED.

    Attributes:
        job: the job as it is stored, with its errors.
    """

    def __init__(self, message: str, job: Job | None = None) -> None:
        super().__init__(message)
        self.job = job


class JobCancelled(EQueueError):
    """The job whose result was asked for was cancelled or expired before it ran."""


class ResultTimeout(EQueueError, TimeoutError):
    """The job did not end within the timeout of ``result``."""


class JoinTimeout(EQueueError, TimeoutError):
    """The queue was not worked off within the timeout of ``join``."""


class PayloadError(EQueueError, TypeError):
    """The codec cannot encode this payload, or cannot decode the stored bytes."""


class TransactionError(EQueueError):
    """A collected transaction is used in a way that cannot be applied."""


class StoreError(EQueueError):
    """The directory cannot be used as a store."""


class StoreOptionError(StoreError, ValueError):
    """An option contradicts the one that the store was made with."""


class StoreVersionError(StoreError):
    """The store was written by a newer release in a format that this one does not know."""


class ForeignStoreError(StoreError):
    """The directory holds another program's LMDB database."""


class StoreAccessError(StoreError, OSError):
    """The path is no directory, or its permissions do not allow reading and writing."""


class NetworkFileSystemError(StoreError):
    """The directory is on a network file system, where kernel locks and memory maps are not
    coherent.
    """


class StoreRemoved(StoreError):
    """The directory was removed or replaced while it was open: close the handle and make a new one."""


class StoreBusy(StoreError):
    """The operation needs the store for itself, and another process has it open."""
