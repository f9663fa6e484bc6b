"""Operations on any queues, applied together or not at all."""

# ruff: noqa: PT012 - a refusal is raised at the end of the block, so the block is what raises
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import (
    ClaimLost,
    DuplicateJob,
    EQueueError,
    JobNotFound,
    JobStateError,
    PayloadError,
    Queue,
    Store,
)
from tests.contract.helpers import LATER, assert_counts, drain, put_done


@pytest.fixture
def one(store: Store) -> Queue:
    return store.queue("one")


@pytest.fixture
def two(store: Store) -> Queue:
    return store.queue("two")


@pytest.mark.contract("TXN-01")
def test_operations_are_applied_at_the_end_of_the_block(
    store: Store, one: Queue, two: Queue
) -> None:
    with store.transaction() as tx:
        tx.put(one, "a")
        tx.put(two, "b")
        assert_counts(one)
        assert_counts(two)
    assert drain(one) == ["a"]
    assert drain(two) == ["b"]


@pytest.mark.contract("TXN-02")
def test_a_put_jobs_id_is_known_at_the_end(store: Store, one: Queue, two: Queue) -> None:
    one.put("before")
    with store.transaction() as tx:
        early = tx.put(one, "early")
        assert early.job_id == 0
    assert early.job_id == 2
    with store.transaction() as tx:
        pending = [tx.put(one, "a"), tx.put(one, "b"), tx.put(two, "c")]
    assert [job.job_id for job in pending] == [3, 4, 1]
    assert one.job(3).payload == "a"


@pytest.mark.contract("TXN-01")
def test_put_takes_the_options_of_put(store: Store, one: Queue) -> None:
    with store.transaction() as tx:
        late = tx.put(one, "late", priority=2, unique="k", max_retries=7)
        tx.put(one, "early", priority=1, expires_in=LATER)
        scheduled = tx.put(one, "scheduled", delay=LATER)
    job = one.job(late.job_id)
    assert (job.priority, job.unique, job.max_retries) == (2, "k", 7)
    assert one.job(scheduled.job_id).state == "scheduled"
    assert drain(one) == ["early", "late"]


@pytest.mark.contract("TXN-01")
def test_every_verb_can_be_collected(store: Store, one: Queue, two: Queue) -> None:
    one.put_many(["ack", "nack", "fail", "release", "nack later", "release later"])
    acked, nacked, failed, released, nacked_later, released_later = one.get_many(6, timeout=0)
    waiting = two.put("cancel")
    with store.transaction() as tx:
        tx.ack(acked, result="result")
        tx.nack(nacked, "reason")
        tx.fail(failed, error="broken")
        tx.release(released)
        tx.nack(nacked_later, delay=LATER)
        tx.release(released_later, delay=LATER)
        tx.cancel(two, waiting)
        tx.put(two, "new")
        assert_counts(one, running=6)
    assert_counts(one, pending=2, scheduled=2, done=1, failed=1)
    assert_counts(two, pending=1, cancelled=1)
    assert one.result(acked.job_id) == "result"
    assert one.job(nacked.job_id).errors[0].message == "reason"
    assert one.job(failed.job_id).errors[0].message == "broken"
    assert (one.job(nacked.job_id).retries, one.job(released.job_id).retries) == (1, 0)
    assert drain(one) == ["release", "nack"]


@pytest.mark.contract("TXN-03")
def test_nothing_is_applied_when_the_block_raises(store: Store, one: Queue, two: Queue) -> None:
    one.put("x")
    record = one.get_nowait()
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        tx.put(two, "never")
        tx.ack(record)
        raise ZeroDivisionError
    assert_counts(one, running=1)
    assert_counts(two)
    record.ack()
    assert two.put("next") == 1


def _stale(queue: Queue) -> Any:
    queue.put("stale")
    record = queue.get_nowait()
    record.ack()
    return record


REFUSED: dict[str, tuple[type[EQueueError], Callable[[Any, Queue], Any]]] = {
    "ack": (ClaimLost, lambda tx, queue: tx.ack(_stale(queue))),
    "nack": (ClaimLost, lambda tx, queue: tx.nack(_stale(queue))),
    "fail": (ClaimLost, lambda tx, queue: tx.fail(_stale(queue))),
    "release": (ClaimLost, lambda tx, queue: tx.release(_stale(queue))),
    "cancel a done job": (JobStateError, lambda tx, queue: tx.cancel(queue, put_done(queue))),
    "cancel no job": (JobNotFound, lambda tx, queue: tx.cancel(queue, 1_000_000)),
    "put a duplicate": (
        DuplicateJob,
        lambda tx, queue: (queue.put("first", unique="k"), tx.put(queue, "x", unique="k")),
    ),
    "put the unencodable": (PayloadError, lambda tx, queue: tx.put(queue, object())),
}


@pytest.mark.contract("TXN-04")
@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize(("error", "refused"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_applied_when_one_operation_is_refused(
    store: Store, one: Queue, two: Queue, error: type[EQueueError], refused: Any, where: str
) -> None:
    one.put_many(["a", "b"])
    records = one.get_many(2, timeout=0)
    first = None
    with pytest.raises(error):
        with store.transaction() as tx:
            if where == "first":
                refused(tx, two)
            tx.ack(records[0])
            first = tx.put(two, "never")
            if where == "middle":
                refused(tx, two)
            tx.nack(records[1])
            if where == "last":
                refused(tx, two)
    assert first is None or first.job_id == 0
    assert "never" not in [job.payload for job in two.jobs()]
    assert two.stats()["total"] == len(two.jobs())
    assert_counts(one, running=2)
    one.ack_many(records)


@pytest.mark.contract("TXN-04")
def test_one_record_is_not_completed_twice(store: Store, one: Queue) -> None:
    one.put("x")
    record = one.get_nowait()
    with pytest.raises(ClaimLost):
        with store.transaction() as tx:
            tx.ack(record)
            tx.nack(record)
    assert_counts(one, running=1)
    record.ack()


@pytest.mark.contract("TXN-04")
def test_one_key_is_not_put_twice(store: Store, one: Queue) -> None:
    with pytest.raises(DuplicateJob):
        with store.transaction() as tx:
            tx.put(one, "x", unique="k")
            tx.put(one, "y", unique="k")
    assert_counts(one)


@pytest.mark.contract("TXN-01", "UNI-02")
def test_a_key_freed_in_a_transaction_can_be_used_in_it(store: Store, one: Queue) -> None:
    one.put("x", unique="k")
    record = one.get_nowait()
    with store.transaction() as tx:
        tx.ack(record)
        tx.put(one, "y", unique="k")
    assert drain(one) == ["y"]


@pytest.mark.contract("TXN-01")
def test_records_completed_in_a_transaction_are_complete(store: Store, one: Queue) -> None:
    one.put("x")
    record = one.get_nowait()
    with store.transaction() as tx:
        tx.ack(record)
    with pytest.raises(ClaimLost):
        record.ack()
    del record
    assert_counts(one, done=1)
    assert drain(one) == []


@pytest.mark.contract("TXN-01")
def test_an_empty_transaction_does_nothing(store: Store, one: Queue) -> None:
    with store.transaction():
        pass
    assert_counts(one)


@pytest.mark.contract("TXN-05")
def test_a_transaction_ends_with_its_block(store: Store, one: Queue) -> None:
    with store.transaction() as tx:
        tx.put(one, "x")
    with pytest.raises(EQueueError):
        tx.put(one, "too late")
    assert drain(one) == ["x"]


@pytest.mark.contract("TXN-05")
def test_another_stores_queue_is_refused(store: Store, one: Queue, tmp_path: Path) -> None:
    with Store(tmp_path / "other", sync="off") as other:
        foreign = other.queue()
        foreign.put("x")
        record = foreign.get_nowait()
        for operation in (
            lambda tx: tx.put(foreign, "y"),
            lambda tx: tx.ack(record),
            lambda tx: tx.cancel(foreign, 1),
        ):
            with pytest.raises((EQueueError, ValueError)):
                with store.transaction() as tx:
                    tx.put(one, "never")
                    operation(tx)
        assert_counts(one)
        assert_counts(foreign, running=1)
        record.ack()


@pytest.mark.contract("TXN-01")
def test_another_handle_of_the_same_store_is_accepted(store: Store, path: Path) -> None:
    store.queue("mail").put("first")
    with Queue(path, "mail") as queue:
        with store.transaction() as tx:
            tx.put(queue, "x")
        assert drain(queue) == ["first", "x"]


@pytest.mark.contract("TXN-01")
def test_a_transaction_holds_nobody_up(store: Store, one: Queue, two: Queue) -> None:
    with store.transaction() as tx:
        tx.put(one, "in the transaction")
        two.put("beside it")
        assert drain(two) == ["beside it"]
        with store.transaction() as inner:
            inner.put(one, "in another")
    assert drain(one) == ["in another", "in the transaction"]


@pytest.mark.contract("TXN-01")
def test_a_transaction_may_be_large(store: Store, one: Queue, two: Queue) -> None:
    one.put_many(range(2000))
    records = one.get_many(2000, timeout=0)
    with store.transaction() as tx:
        for record in records:
            tx.ack(record)
            tx.put(two, record.payload)
    assert_counts(one, done=2000)
    assert drain(two) == list(range(2000))


@pytest.mark.contract("TXN-01")
@pytest.mark.parametrize("sync", ["full", "normal"])
def test_transactions_in_the_durable_modes(path: Path, sync: str) -> None:
    with Store(path, sync=sync) as store:
        queue = store.queue()
        queue.put("x")
        with store.transaction() as tx:
            tx.ack(queue.get_nowait())
            tx.put(queue, "y")
        assert_counts(queue, pending=1, done=1)
