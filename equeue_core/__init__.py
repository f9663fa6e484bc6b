"""equeue: a durable job queue that is a directory.

::

    from equeue_core import Queue

    with Queue("./data") as queue:
        queue.put({"task": "send_email", "to": "user@example.com"})

        record = queue.get(timeout=5.0)
        print(record.payload)
        record.ack()
"""

from equeue_core._aio import AsyncQueue, AsyncRecord
from equeue_core._job import Job, JobError, State
from equeue_core._maintenance import CheckReport, Owner
from equeue_core._queue import Queue
from equeue_core._record import Record
from equeue_core._retry import exponential_backoff
from equeue_core._store_handle import Store
from equeue_core._transaction import PendingJob, Transaction
from equeue_core.errors import (
    ClaimLost,
    DiskFull,
    DuplicateJob,
    EQueueError,
    ForeignStoreError,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobStateError,
    JoinTimeout,
    NetworkFileSystemError,
    PayloadError,
    QueueClosed,
    QueueCorrupted,
    QueueEmpty,
    QueueFull,
    ResultTimeout,
    StoreAccessError,
    StoreBusy,
    StoreError,
    StoreOptionError,
    StoreRemoved,
    StoreVersionError,
    TransactionError,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncQueue",
    "AsyncRecord",
    "CheckReport",
    "ClaimLost",
    "DiskFull",
    "DuplicateJob",
    "EQueueError",
    "ForeignStoreError",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobNotFound",
    "JobStateError",
    "JoinTimeout",
    "NetworkFileSystemError",
    "Owner",
    "PayloadError",
    "PendingJob",
    "Queue",
    "QueueClosed",
    "QueueCorrupted",
    "QueueEmpty",
    "QueueFull",
    "Record",
    "ResultTimeout",
    "State",
    "Store",
    "StoreAccessError",
    "StoreBusy",
    "StoreError",
    "StoreOptionError",
    "StoreRemoved",
    "StoreVersionError",
    "Transaction",
    "TransactionError",
    "exponential_backoff",
]
