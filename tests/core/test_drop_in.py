"""What was written for lmdb-queue works with the import changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from equeue_core import (
    AsyncQueue,
    EQueueError,
    Queue,
    QueueClosed,
    QueueCorrupted,
    QueueEmpty,
    Record,
)
from tests.contract.helpers import WATCHDOG, assert_counts

pytestmark = pytest.mark.contract("DRP-01")


def test_put_get_and_ack_in_a_with_block(path: Path) -> None:
    with Queue(str(path)) as q:
        job_id = q.put({"task": "send_email", "to": "user@example.com"})
        record = q.get(timeout=5.0)
        assert isinstance(record, Record)
        assert record.job_id == job_id
        assert record.payload == {"task": "send_email", "to": "user@example.com"}
        record.ack()
        assert q.stats()["done"] == 1


def test_a_handler_that_raises_nacks(path: Path) -> None:
    with Queue(str(path)) as q:
        q.put({"task": "send_email"})
        record = q.get(timeout=5.0)
        try:
            raise OSError("no connection")
        except Exception:
            record.nack()
        assert_counts(q, pending=1)
        assert q.get(timeout=5.0).retries == 1


def test_processing_acks_and_nacks(path: Path) -> None:
    with Queue(str(path)) as q:
        q.put("fine")
        with q.processing(timeout=5.0) as record:
            assert record.payload == "fine"
        assert_counts(q, done=1)
        q.put("broken")
        with pytest.raises(OSError, match="broken"), q.processing(timeout=5.0) as record:
            raise OSError(record.payload)
        assert_counts(q, done=1, pending=1)


def test_the_async_queue_works_in_an_async_with_block(path: Path) -> None:
    handled = []

    async def main() -> None:
        async with AsyncQueue(str(path)) as q:
            await q.put({"task": "resize_image"})
            async with q.processing() as record:
                handled.append(record.payload)
            stats = await q.stats()
            assert stats["done"] == 1

    asyncio.run(asyncio.wait_for(main(), WATCHDOG))
    assert handled == [{"task": "resize_image"}]


@pytest.mark.contract("DRP-02")
def test_its_constructor_arguments_are_accepted(path: Path) -> None:
    q = Queue(
        str(path),
        lease_time=30.0,
        max_retries=3,
        map_size=2**30,
        sync=False,
        do_recover=True,
        recover_interval=15.0,
        do_vacuum=True,
        vacuum_interval=300.0,
    )
    with q:
        q.put("x")
        q.get(timeout=5.0).ack()
        assert q.path == str(path)


@pytest.mark.contract("DRP-02")
def test_the_async_queue_accepts_them_too(path: Path) -> None:
    async def main() -> None:
        q = AsyncQueue(
            str(path),
            lease_time=30.0,
            max_retries=0,
            map_size=2**30,
            sync=False,
            do_recover=False,
            recover_interval=15.0,
            do_vacuum=False,
            vacuum_interval=300.0,
        )
        async with q:
            await q.put("x")
            assert (await q.get(timeout=5.0)).payload == "x"

    asyncio.run(asyncio.wait_for(main(), WATCHDOG))


@pytest.mark.contract("DRP-02")
@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_time": 0},
        {"max_retries": -1},
        {"map_size": 0},
        {"recover_interval": 0},
        {"vacuum_interval": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_its_arguments_have_the_same_bounds(path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Queue(str(path), **wrong)  # type: ignore[arg-type]


@pytest.mark.contract("DRP-02", "SYN-01")
@pytest.mark.parametrize(("given", "means"), [(True, "full"), (False, "off")])
def test_its_sync_argument_means_full_or_off(path: Path, given: bool, means: str) -> None:
    with Queue(str(path), sync=given) as q:
        q.put("x")
        assert q.store.sync == means


def test_its_counters_have_the_same_names(path: Path) -> None:
    with Queue(str(path), sync=False) as q:
        assert {"pending", "running", "done", "failed", "total"} <= set(q.stats())


def test_its_exceptions_have_the_same_names_and_meanings(path: Path) -> None:
    q = Queue(str(path), sync=False)
    with pytest.raises(QueueEmpty):
        q.get(timeout=0.001)
    q.put("x")
    record = q.get()
    record.ack()
    with pytest.raises(QueueCorrupted):
        record.ack()
    q.close()
    q.close()
    for operation in (lambda: q.put("y"), q.get, q.stats, record.ack):
        with pytest.raises(QueueClosed):
            operation()
    for error in (QueueEmpty, QueueCorrupted, QueueClosed):
        assert issubclass(error, EQueueError)


def test_jobs_survive_a_restart(path: Path) -> None:
    with Queue(str(path)) as q:
        for number in range(10):
            q.put(number)
    with Queue(str(path)) as q:
        records = [q.get() for _ in range(10)]
        assert [record.payload for record in records] == list(range(10))


def test_a_queue_is_generic_in_its_payload(path: Path) -> None:
    q: Queue[dict[str, int]] = Queue[dict[str, int]](path)
    q.close()
    a: AsyncQueue[str] = AsyncQueue[str](path)
    assert a is not None
