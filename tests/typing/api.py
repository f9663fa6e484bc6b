"""Legal uses of the public API. `mypy --strict` must accept this file; nothing ever runs it."""

from __future__ import annotations

import datetime
import os
import pathlib
import queue as standard_queue
from typing import Any

from typing_extensions import assert_type

from equeue_core import (
    AsyncQueue,
    ClaimLost,
    DiskFull,
    DuplicateJob,
    EQueueError,
    ForeignStoreError,
    Job,
    JobCancelled,
    JobError,
    JobFailed,
    JobNotFound,
    JobStateError,
    JoinTimeout,
    NetworkFileSystemError,
    PayloadError,
    Queue,
    QueueClosed,
    QueueCorrupted,
    QueueEmpty,
    QueueFull,
    Record,
    ResultTimeout,
    State,
    Store,
    StoreAccessError,
    StoreBusy,
    StoreError,
    StoreOptionError,
    StoreVersionError,
    Transaction,
    exponential_backoff,
)

UTC = datetime.timezone.utc


class Text:
    """A codec needs the two methods, and no base class."""

    def encode(self, obj: Any) -> bytes:
        return str(obj).encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


class Directory(os.PathLike[str]):
    def __fspath__(self) -> str:
        return "./data"


def opening() -> None:
    Store("./data")
    Store(pathlib.Path("./data"), sync="full", map_size=1 << 30, allow_network_fs=False)
    Store(Directory(), sync=None, map_size=None)
    for mode in (True, False):
        Store("./data", sync=mode)
    Store("./data", sync="normal")
    Store("./data", sync="off")
    store = Store("./data")
    with store as same:
        assert_type(same, Store)
        Queue(same)
        Queue(same, "mail")
        assert_type(same.queue(), Queue)
        assert_type(same.queue("mail", lease_time=30, max_retries=0, backoff=1.5), Queue)
    Queue("./data")
    Queue(pathlib.Path("./data"), name="mail")
    Queue(
        "./data",
        "mail",
        lease_time=None,
        max_retries=5,
        backoff=exponential_backoff(),
        map_size=1 << 30,
        sync="full",
        do_recover=False,
        recover_interval=0.5,
        do_vacuum=False,
        vacuum_interval=60,
        keep_done=False,
        keep_failed=60,
        codec=Text(),
        allow_network_fs=True,
    )
    Queue("./data", backoff=lambda retries: retries * 2.0)
    Queue("./data", backoff=None)


def store_operations(store: Store, path: pathlib.Path) -> None:
    assert_type(store.queues(), list[str])
    assert_type(store.stats(), dict[str, dict[str, int]])
    for owner in store.owners():
        print(owner.owner_id, owner.pid, owner.host, owner.since)
    store.backup(path)
    store.backup("./copy")
    report = store.check()
    assert_type(report.ok, bool)
    assert_type(report.jobs, int)
    assert_type(report.queues, int)
    print(*report.problems, sep="\n")
    before, after = store.compact()
    assert_type(before, int)
    assert_type(after, int)
    store.configure(sync="normal")
    print(store.path, store.sync)
    store.close()


def putting(queue: Queue) -> None:
    assert_type(queue.put({"to": "hello@example.org"}), int)
    queue.put(None, priority=-5, delay=2.5, max_retries=0)
    queue.put(b"bytes", run_at=datetime.datetime.now(UTC), expires_in=60)
    queue.put("text", run_at=1_900_000_000.0, unique="once")
    queue.put(1, delay=datetime.timedelta(minutes=1).total_seconds())
    queue.put_nowait([1, 2, 3], priority=1)
    assert_type(queue.put_many(["a", "b"]), list[int])
    queue.put_many((number for number in range(3)), priority=1, delay=1, expires_in=5)


def getting(queue: Queue) -> None:
    assert_type(queue.get(), Record)
    assert_type(queue.get(timeout=0), Record)
    assert_type(queue.get(2.5), Record)
    assert_type(queue.get_nowait(), Record)
    records = queue.get_many(10, timeout=1)
    assert_type(records, list[Record])
    queue.ack_many(records)
    with queue.processing(timeout=1) as record:
        assert_type(record, Record)
    with queue.processing():
        pass


def completing(record: Record) -> None:
    assert_type(record.job_id, int)
    assert_type(record.attempt, int)
    assert_type(record.retries, int)
    assert_type(record.enqueued_at, float)
    assert_type(record.queue, str)
    print(record.payload["to"], record.priority + 1)
    record.ack()
    record.ack(result={"sent": True})
    record.nack()
    record.nack(error="refused", delay=10)
    record.nack(ValueError("refused"))
    record.fail("never again")
    record.fail(ValueError("never again"))
    record.release()
    record.release(delay=1.5)
    record.extend(30)


def looking_up(queue: Queue) -> None:
    job = queue.job(1)
    assert_type(job, Job)
    assert_type(job.job_id, int)
    assert_type(job.queue, str)
    assert_type(job.state, State)
    assert_type(job.payload_bytes, bytes)
    assert_type(job.attempts, int)
    assert_type(job.retries, int)
    assert_type(job.max_retries, int | None)
    assert_type(job.enqueued_at, float)
    assert_type(job.unique, str | None)
    assert_type(job.errors, tuple[JobError, ...])
    print(job.payload, job.priority, job.due_at, job.expires_at, job.claimed_at, job.deadline)
    print(job.owner, job.finished_at, job.result)
    for error in job.errors:
        print(error.attempt, error.at, error.message, error.traceback)
    name: str = State.FAILED
    page = queue.jobs(State.FAILED, limit=10)
    assert_type(page, list[Job])
    queue.jobs()
    queue.jobs("failed", after=page[-1])
    print(name, queue.result(1, timeout=1), queue.result(1))


def managing(queue: Queue) -> None:
    queue.cancel(1)
    queue.requeue(1)
    assert_type(queue.requeue_failed(), int)
    assert_type(queue.purge(State.DONE), int)
    assert_type(queue.purge("failed"), int)
    queue.pause()
    queue.resume()
    assert_type(queue.paused, bool)
    queue.join()
    queue.join(timeout=1.5)
    assert_type(queue.stats()["pending"], int)
    assert_type(queue.qsize(), int)
    assert_type(queue.empty(), bool)
    assert_type(queue.recover(), int)
    assert_type(queue.vacuum(), int)
    assert_type(queue.name, str)
    assert_type(queue.store, Store)
    with queue as same:
        assert_type(same, Queue)
    queue.close()


def together(store: Store, queue: Queue, record: Record) -> int:
    with store.transaction() as tx:
        assert_type(tx, Transaction)
        pending = tx.put(queue, {"next": 2}, priority=1, delay=5, unique="next")
        tx.ack(record, result=1)
        tx.nack(record, error="refused", delay=1)
        tx.fail(record, error="refused")
        tx.release(record, delay=1)
        tx.cancel(queue, 7)
    return pending.job_id


async def asynchronously(path: str) -> None:
    async with AsyncQueue(path, "mail", lease_time=30, codec=Text()) as queue:
        assert_type(queue, AsyncQueue)
        job_id = await queue.put("text", delay=1)
        assert_type(job_id, int)
        assert_type(await queue.put_many(["a", "b"], priority=2), list[int])
        record = await queue.get(timeout=1)
        await record.ack(result=1)
        await record.nack("refused", delay=1)
        await record.fail("never again")
        await record.release(delay=1)
        await record.extend(30)
        print(record.payload, record.job_id)
        records = await queue.get_many(10, timeout=1)
        await queue.ack_many(records)
        async with queue.processing(timeout=1) as record:
            print(record.payload)
        assert_type(await queue.job(job_id), Job)
        assert_type(await queue.jobs(State.DONE, limit=10), list[Job])
        await queue.cancel(job_id)
        await queue.requeue(job_id)
        assert_type(await queue.requeue_failed(), int)
        assert_type(await queue.purge("done"), int)
        await queue.pause()
        await queue.resume()
        await queue.join(timeout=1)
        print(await queue.result(job_id, timeout=1))
        assert_type((await queue.stats())["done"], int)
        assert_type(await queue.qsize(), int)
        assert_type(await queue.empty(), bool)


def errors(queue: Queue) -> None:
    try:
        queue.get_nowait()
    except standard_queue.Empty as error:
        print(error)
    root: list[type[EQueueError]] = [
        QueueClosed,
        JobStateError,
        JobFailed,
        JobCancelled,
        StoreError,
    ]
    empty: type[standard_queue.Empty] = QueueEmpty
    full: list[type[standard_queue.Full]] = [QueueFull, DiskFull]
    corrupted: type[QueueCorrupted] = ClaimLost
    lookup: type[LookupError] = JobNotFound
    timeouts: list[type[TimeoutError]] = [ResultTimeout, JoinTimeout]
    type_error: type[TypeError] = PayloadError
    value_error: type[ValueError] = StoreOptionError
    store: list[type[StoreError]] = [
        StoreOptionError,
        StoreVersionError,
        ForeignStoreError,
        StoreAccessError,
        NetworkFileSystemError,
        StoreBusy,
    ]
    print(root, empty, full, corrupted, lookup, timeouts, type_error, value_error, store)
    try:
        queue.put("text", unique="once")
    except DuplicateJob as error:
        assert_type(error.job_id, int)


def retrying() -> None:
    assert_type(exponential_backoff()(1), float)
