"""Leases: a limit on how long a job may be held."""

from __future__ import annotations

from pathlib import Path

import pytest

from equeue_core import ClaimLost, Queue, QueueEmpty, Store
from tests.contract.clock import Clock
from tests.contract.helpers import LATER, assert_counts, drain, snapshot, wait_until


@pytest.fixture
def leased(store: Store) -> Queue:
    return store.queue(lease_time=30.0, max_retries=2)


@pytest.mark.contract("LEA-01")
def test_a_job_is_kept_until_its_lease_expires(leased: Queue, clock: Clock) -> None:
    leased.put("x")
    record = leased.get_nowait()
    clock.advance(29)
    assert leased.recover() == 0
    with pytest.raises(QueueEmpty):
        leased.get_nowait()
    record.ack()
    assert_counts(leased, done=1)


@pytest.mark.contract("LEA-02")
def test_an_expired_lease_gives_the_job_away(leased: Queue, clock: Clock) -> None:
    leased.put("x")
    late = leased.get_nowait()
    clock.advance(31)
    again = leased.get_nowait()
    assert (again.job_id, again.retries, again.attempt) == (late.job_id, 1, 2)
    again.ack()


@pytest.mark.contract("LEA-03")
@pytest.mark.parametrize("verb", ["ack", "nack", "fail", "release"])
def test_who_is_late_changes_nothing(leased: Queue, clock: Clock, verb: str) -> None:
    leased.put("x")
    late = leased.get_nowait()
    clock.advance(31)
    again = leased.get_nowait()
    before = snapshot(leased)
    with pytest.raises(ClaimLost):
        getattr(late, verb)()
    with pytest.raises(ClaimLost):
        late.extend(60)
    assert snapshot(leased) == before
    again.ack()
    assert_counts(leased, done=1)


@pytest.mark.contract("LEA-02")
def test_recover_gives_expired_jobs_back(leased: Queue, clock: Clock) -> None:
    leased.put_many(list("abc"))
    records = leased.get_many(3, timeout=0)
    clock.advance(31)
    assert leased.recover() == 3
    assert leased.recover() == 0
    assert_counts(leased, pending=3)
    with pytest.raises(ClaimLost):
        records[0].ack()
    assert drain(leased) == ["a", "b", "c"]


@pytest.mark.contract("LEA-02", "ORD-04")
def test_an_expired_job_goes_back_to_its_place(leased: Queue, clock: Clock) -> None:
    leased.put("a")
    held = leased.get_nowait()
    leased.put("b")
    clock.advance(31)
    assert drain(leased) == ["a", "b"]
    assert held.payload == "a"


@pytest.mark.contract("LEA-02", "RET-01")
def test_a_job_whose_leases_expire_fails_in_the_end(leased: Queue, clock: Clock) -> None:
    job_id = leased.put("x")
    records = []
    for _ in range(3):
        records.append(leased.get_nowait())
        clock.advance(31)
    leased.recover()
    assert_counts(leased, failed=1)
    assert [error.attempt for error in leased.job(job_id).errors] == [1, 2, 3]
    with pytest.raises(QueueEmpty):
        leased.get_nowait()


@pytest.mark.contract("LEA-04")
def test_extend_counts_from_now(leased: Queue, clock: Clock) -> None:
    job_id = leased.put("x")
    record = leased.get_nowait()
    first = leased.job(job_id).deadline
    clock.advance(20)
    record.extend(100)
    assert leased.job(job_id).deadline == pytest.approx(first + 90, abs=5)
    clock.advance(95)
    assert leased.recover() == 0
    clock.advance(10)
    assert leased.recover() == 1
    with pytest.raises(ClaimLost):
        record.ack()


@pytest.mark.contract("LEA-04")
def test_extending_again_and_again_keeps_the_job(leased: Queue, clock: Clock) -> None:
    leased.put("x")
    record = leased.get_nowait()
    for _ in range(10):
        clock.advance(25)
        record.extend(30)
        assert leased.recover() == 0
    record.ack()
    assert_counts(leased, done=1)


@pytest.mark.contract("LEA-04")
def test_extend_gives_a_lease_to_a_claim_without_one(queue: Queue, clock: Clock) -> None:
    job_id = queue.put("x")
    record = queue.get_nowait()
    assert queue.job(job_id).deadline is None
    record.extend(10)
    assert queue.job(job_id).deadline is not None
    clock.advance(11)
    assert queue.recover() == 1


@pytest.mark.contract("LEA-05")
def test_the_lease_is_that_of_the_handle_that_claims(store: Store, clock: Clock) -> None:
    short, none = store.queue(lease_time=10), store.queue()
    short.put_many(["leased", "unlimited"])
    leased, unlimited = short.get_nowait(), none.get_nowait()
    clock.advance(11)
    assert none.recover() == 1
    unlimited.ack()
    with pytest.raises(ClaimLost):
        leased.ack()
    assert_counts(none, pending=1, done=1)


@pytest.mark.contract("LEA-02")
def test_a_lease_expires_by_the_machines_own_clock_too(path: Path) -> None:
    with Queue(path, sync="off", lease_time=0.05) as short, Queue(path) as queue:
        short.put("x")
        late = short.get_nowait()
        again = queue.get(timeout=60)
        assert again.payload == "x"
        with pytest.raises(ClaimLost):
            late.ack()
        again.ack()


@pytest.mark.contract("OWN-06")
def test_without_do_recover_expired_leases_stay(store: Store, clock: Clock) -> None:
    passive = store.queue(lease_time=10, do_recover=False)
    passive.put("x")
    record = passive.get_nowait()
    clock.advance(LATER)
    with pytest.raises(QueueEmpty):
        passive.get_nowait()
    assert_counts(passive, running=1)
    active = store.queue()
    wait_until(lambda: active.qsize() == 1 or active.recover() == 1, "it is taken over")
    assert record.job_id == 1
