"""A full store: put says so, and everything that makes room goes on."""

from __future__ import annotations

import asyncio
import queue as stdlib_queue
from pathlib import Path
from typing import Any

import pytest

from equeue_core import AsyncQueue, Queue, QueueEmpty, QueueFull, Store
from tests.contract.helpers import LATER, assert_counts
from tests.core.children import run

LIMIT = 1 << 20


def fill(queue: Queue, payload: Any) -> int:
    """Put until it is refused; how many were put."""
    for count in range(100_000):  # noqa: B007 - the answer
        try:
            queue.put(payload)
        except QueueFull as error:
            refusal = error
            break
    else:
        pytest.fail("there is no limit")
    assert isinstance(refusal, stdlib_queue.Full)
    assert str(refusal)
    return count


@pytest.fixture(params=[100, 3_000, 20_000])
def full(path: Path, request: pytest.FixtureRequest) -> Any:
    """A queue that is full of payloads of one size."""
    with Store(path, sync="off", map_size=LIMIT) as store, store.queue() as queue:
        count = fill(queue, "x" * request.param)
        assert_counts(queue, pending=count)
        yield queue, count


@pytest.mark.contract("LIM-01")
def test_a_full_store_takes_about_its_limit(full: Any) -> None:
    queue, count = full
    held = sum(len(job.payload_bytes) for job in queue.jobs(limit=count))
    assert LIMIT / 4 < held <= LIMIT


@pytest.mark.contract("LIM-01")
def test_nothing_of_a_refused_put_remains(full: Any) -> None:
    queue, count = full
    for put in (
        lambda: queue.put("x" * 20_000),
        lambda: queue.put_many(["x" * 20_000] * 3),
        lambda: queue.put("x" * 20_000, delay=LATER, unique="k"),
    ):
        with pytest.raises(QueueFull):
            put()
    with pytest.raises(QueueFull):
        _put_in_a_transaction(queue, "x" * 20_000)
    assert_counts(queue, pending=count)
    assert queue.store.check().ok


def _put_in_a_transaction(queue: Queue, payload: Any) -> None:
    with queue.store.transaction() as tx:
        tx.put(queue, payload)


@pytest.mark.contract("LIM-02")
def test_a_full_store_can_be_drained_to_empty(full: Any) -> None:
    queue, count = full
    for number in range(count):
        record = queue.get_nowait()
        assert record.job_id == number + 1
        record.ack()
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    assert queue.purge("done") == count
    assert queue.put("again") == count + 1


@pytest.mark.contract("LIM-02")
@pytest.mark.parametrize("verb", ["nack", "fail", "release"])
def test_in_a_full_store_every_completion_works(full: Any, verb: str) -> None:
    queue, count = full
    records = queue.get_many(min(count, 50), timeout=0)
    for record in records:
        getattr(record, verb)(*(["why"] if verb != "release" else []))
    counts = queue.stats()
    assert counts["running"] == 0
    assert counts["total"] == count
    queue.get_nowait().release(delay=LATER)
    assert queue.recover() == 0
    assert len(queue.jobs()) == min(count, 100)


@pytest.mark.contract("LIM-02")
def test_a_full_store_can_be_cancelled_and_purged(full: Any) -> None:
    queue, count = full
    queue.cancel(1)
    queue.get_nowait().fail("why")
    queue.requeue_failed()
    assert queue.purge("pending") == count - 1
    assert queue.purge("cancelled") == 1
    queue.put("again")


@pytest.mark.contract("LIM-02")
def test_a_full_store_can_be_closed_and_opened(path: Path) -> None:
    with Queue(path, sync="off", map_size=LIMIT) as queue:
        count = fill(queue, "x" * 1000)
    with Queue(path, map_size=LIMIT) as queue:
        with pytest.raises(QueueFull):
            queue.put("x" * 1000)
        for _ in range(count):
            queue.get_nowait().ack()
    with Queue(path) as unlimited:
        unlimited.put("x" * LIMIT)
        assert unlimited.get_nowait().payload == "x" * LIMIT


@pytest.mark.contract("LIM-01")
def test_without_a_limit_there_is_none(path: Path) -> None:
    with Queue(path, sync="off") as queue:
        queue.put_many(["x" * 1000] * 5000)
        assert_counts(queue, pending=5000)


@pytest.mark.contract("LIM-03")
def test_room_that_is_made_is_used_again(path: Path) -> None:
    with Queue(path, sync="off", map_size=LIMIT) as queue:
        for _ in range(20):
            count = 0
            while count < 300:
                try:
                    queue.put("x" * 1000)
                except QueueFull:
                    break
                count += 1
            assert count > 100
            queue.ack_many(queue.get_many(count, timeout=0))
            queue.purge("done")
        size = (path / "data.mdb").stat().st_size
    assert size < 8 * LIMIT


async def _put_async(queue: Queue, payload: Any) -> None:
    async with AsyncQueue(queue.store) as same:
        await same.put(payload)


@pytest.mark.contract("LIM-03")
@pytest.mark.parametrize("sync", ["off", "full"])
@pytest.mark.parametrize(
    "put",
    [
        Queue.put,
        _put_in_a_transaction,
        lambda queue, payload: asyncio.run(_put_async(queue, payload)),
    ],
    ids=["put", "transaction", "async"],
)
def test_a_large_payload_gets_the_room_of_many_done_jobs(path: Path, put: Any, sync: Any) -> None:
    with Store(path, sync=sync, map_size=LIMIT) as store, store.queue() as queue:
        done = 0
        while queue.stats()["done"] == done:  # until done jobs had to go
            queue.put_many(["x" * 300] * 100)
            queue.ack_many(queue.get_many(100))
            done += 100
        kept = queue.stats()["done"]
        put(queue, "y" * (LIMIT // 2))
        assert queue.stats()["pending"] == 1
        assert 0 < queue.stats()["done"] < kept

        kept = queue.stats()["done"]
        with pytest.raises(QueueFull):
            put(queue, "z" * LIMIT)
        assert queue.stats()["done"] == kept  # in vain: it would never fit


def test_a_limit_on_the_size_of_files_is_named(path: Path) -> None:
    script = """
        import resource
        from equeue_core import DiskFull
        queue = Queue(path, sync="off")
        first = queue.put("first")
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, hard))
        try:
            queue.put("x" * (8 << 20))
        except DiskFull as error:
            say("ulimit -f" in str(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        queue.put("x" * (8 << 20))
        say(*[len(record.payload) for record in queue.get_many(9)])
    """
    assert run(script, path).split() == ["True", "5", str(8 << 20)]
