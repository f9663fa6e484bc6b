"""Due times, expiry and retention, on a clock that the test moves."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from equeue_core import JobNotFound, Queue, QueueEmpty, Store, exponential_backoff
from tests.contract.clock import Clock
from tests.contract.helpers import assert_counts, put_cancelled, put_done, put_failed, state_of

DAY = 24 * 3600.0


def take_all(queue: Queue) -> list[object]:
    """Everything that can be had now."""
    payloads = []
    try:
        while True:
            record = queue.get_nowait()
            payloads.append(record.payload)
            record.ack()
    except QueueEmpty:
        return payloads


@pytest.mark.contract("DEL-01")
def test_a_job_is_delivered_when_it_is_due_and_not_before(queue: Queue, clock: Clock) -> None:
    queue.put("x", delay=100)
    clock.advance(99)
    assert take_all(queue) == []
    clock.advance(2)
    assert take_all(queue) == ["x"]


@pytest.mark.contract("DEL-01")
def test_jobs_come_due_in_their_order(queue: Queue, clock: Clock) -> None:
    delays = random.Random(7).sample(range(10, 10_000, 10), 200)
    for delay in delays:
        queue.put(delay, delay=delay)
    seen = []
    for _ in range(20):
        clock.advance(500.5)
        seen += take_all(queue)
    assert seen == sorted(delays)


@pytest.mark.contract("DEL-01")
def test_thousands_of_jobs_can_come_due_at_once(queue: Queue, clock: Clock) -> None:
    queue.put_many(range(3000), delay=50)
    clock.advance(51)
    assert take_all(queue) == list(range(3000))
    assert_counts(queue, done=3000)


@pytest.mark.contract("DEL-01")
def test_many_due_jobs_can_be_taken_at_once(queue: Queue, clock: Clock) -> None:
    queue.put_many(range(3000), delay=50)
    clock.advance(51)
    seen: list[int] = []
    while len(seen) < 3000:
        records = queue.get_many(3000, timeout=0)
        seen += [record.payload for record in records]
        queue.ack_many(records)
    assert seen == list(range(3000))


@pytest.mark.contract("DEL-01", "ORD-02")
def test_a_due_job_is_taken_by_its_priority(queue: Queue, clock: Clock) -> None:
    queue.put("urgent", priority=-1, delay=10)
    queue.put("waiting")
    clock.advance(11)
    assert take_all(queue) == ["urgent", "waiting"]


@pytest.mark.contract("DEL-05")
@pytest.mark.parametrize("give_back", ["nack", "release"])
def test_a_job_given_back_with_a_delay_comes_due(
    queue: Queue, clock: Clock, give_back: str
) -> None:
    queue.put("x")
    getattr(queue.get_nowait(), give_back)(delay=100)
    clock.advance(99)
    assert take_all(queue) == []
    clock.advance(2)
    assert take_all(queue) == ["x"]


@pytest.mark.contract("RET-06")
def test_backoff_delays_each_retry_by_its_own_time(store: Store, clock: Clock) -> None:
    queue = store.queue(backoff=lambda retries: 10.0**retries, max_retries=3)
    queue.put("x")
    for wait in (10, 100, 1000):
        queue.get_nowait().nack()
        clock.advance(wait - 1)
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        clock.advance(2)
    queue.get_nowait().nack()
    assert_counts(queue, failed=1)


@pytest.mark.contract("RET-06")
def test_exponential_backoff_grows_and_is_bounded() -> None:
    backoff = exponential_backoff()
    delays = [[backoff(retries) for _ in range(50)] for retries in range(1, 40)]
    assert all(delay >= 0 for several in delays for delay in several)
    assert max(delays[5]) > max(delays[0])
    longest = max(map(max, delays))
    assert longest < 30 * DAY
    assert backoff(10_000) <= 30 * DAY
    assert len(set(delays[5])) > 1, "there is no jitter"


@pytest.mark.contract("EXP-01")
def test_a_job_not_claimed_in_time_is_cancelled(queue: Queue, clock: Clock) -> None:
    job_id = queue.put("x", expires_in=100)
    clock.advance(99)
    assert_counts(queue, pending=1)
    clock.advance(2)
    assert take_all(queue) == []
    assert state_of(queue, job_id) == "cancelled"
    assert_counts(queue, cancelled=1)


@pytest.mark.contract("EXP-01")
def test_expired_jobs_do_not_hold_up_the_others(queue: Queue, clock: Clock) -> None:
    queue.put_many(["stale"] * 2500, expires_in=10)
    queue.put("fresh")
    clock.advance(11)
    assert take_all(queue) == ["fresh"]
    queue.recover()
    while queue.stats()["pending"]:
        take_all(queue)
    assert_counts(queue, done=1, cancelled=2500)


@pytest.mark.contract("EXP-01")
def test_a_scheduled_job_expires_too(queue: Queue, clock: Clock) -> None:
    job_id = queue.put("x", delay=100, expires_in=50)
    clock.advance(101)
    assert take_all(queue) == []
    assert state_of(queue, job_id) == "cancelled"


@pytest.mark.contract("EXP-02")
def test_a_claimed_job_does_not_expire(queue: Queue, clock: Clock) -> None:
    job_id = queue.put("x", expires_in=100)
    record = queue.get_nowait()
    clock.advance(1000)
    assert take_all(queue) == []
    record.ack("in time")
    assert queue.result(job_id) == "in time"


@pytest.mark.contract("EXP-02")
def test_a_job_claimed_in_time_is_retried_after_it(queue: Queue, clock: Clock) -> None:
    """`expires_in` limits the wait for the first claim."""
    queue.put("x", expires_in=100)
    record = queue.get_nowait()
    clock.advance(1000)
    record.nack()
    assert take_all(queue) == ["x"]


@pytest.mark.contract("EXP-01", "RES-02")
def test_an_expired_job_is_joined_and_has_no_result(queue: Queue, clock: Clock) -> None:
    queue.put("x", expires_in=100)
    clock.advance(101)
    queue.join(timeout=60)
    assert_counts(queue, cancelled=1)


@pytest.mark.contract("KEP-01", "KEP-02")
@pytest.mark.parametrize("make", [put_done, put_cancelled])
def test_ended_jobs_are_kept_for_five_minutes(queue: Queue, clock: Clock, make: Any) -> None:
    job_id = make(queue)
    clock.advance(290)
    assert queue.vacuum() == 0
    assert queue.job(job_id).job_id == job_id
    clock.advance(70)
    queue.vacuum()
    with pytest.raises(JobNotFound):
        queue.job(job_id)
    assert_counts(queue, total=1)
    assert queue.vacuum() == 0


@pytest.mark.contract("KEP-02")
def test_the_time_they_are_kept_can_be_chosen(store: Store, clock: Clock) -> None:
    queue = store.queue(vacuum_interval=DAY)
    put_done(queue)
    clock.advance(DAY - 100)
    assert queue.vacuum() == 0
    clock.advance(200)
    assert queue.vacuum() == 1


@pytest.mark.contract("KEP-02")
def test_thousands_of_ended_jobs_can_be_vacuumed(queue: Queue, clock: Clock) -> None:
    queue.put_many(range(3000))
    queue.ack_many(queue.get_many(3000, timeout=0))
    clock.advance(400)
    assert queue.vacuum() == 3000
    assert_counts(queue, total=3000)


@pytest.mark.contract("KEP-04")
def test_vacuuming_happens_by_itself(queue: Queue, clock: Clock) -> None:
    put_done(queue)
    for number in range(20):
        clock.advance(400)
        queue.put(number)
        queue.get_nowait().ack()
    assert queue.stats()["done"] < 10


@pytest.mark.contract("KEP-04")
def test_without_do_vacuum_a_handle_removes_nothing_by_itself(store: Store, clock: Clock) -> None:
    queue = store.queue(do_vacuum=False)
    for number in range(20):
        clock.advance(400)
        queue.put(number)
        queue.get_nowait().ack()
    assert_counts(queue, done=20)
    clock.advance(400)
    assert queue.vacuum() == 20


@pytest.mark.contract("KEP-03")
def test_failed_jobs_are_kept_for_ever(queue: Queue, clock: Clock) -> None:
    queue.put("x")
    queue.get_nowait().fail()
    clock.advance(1000 * DAY)
    queue.vacuum()
    put_done(queue)
    assert queue.stats()["failed"] == 1


@pytest.mark.contract("KEP-06")
def test_failed_jobs_are_kept_as_long_as_was_said(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000, vacuum_interval=1)
    early = put_failed(queue, "early")
    clock.advance(600)
    late = put_failed(queue, "late")
    clock.advance(399)
    queue.vacuum()
    assert queue.stats()["failed"] == 2
    clock.advance(2)
    assert queue.vacuum() == 1
    assert [job.job_id for job in queue.jobs("failed")] == [late]
    with pytest.raises(JobNotFound):
        queue.job(early)
    assert store.check().ok


@pytest.mark.contract("KEP-06")
def test_the_order_in_which_they_failed_counts_not_their_ids(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000)
    queue.put_many(["first", "second"])
    first, second = queue.get_many(2, timeout=0)
    second.fail()
    clock.advance(600)
    first.fail()
    clock.advance(600)
    assert queue.vacuum() == 1
    assert [job.payload for job in queue.jobs("failed")] == ["first"]


@pytest.mark.contract("KEP-06")
def test_a_requeued_jobs_time_begins_with_its_next_failure(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000)
    job_id = put_failed(queue)
    clock.advance(600)
    queue.requeue(job_id)
    clock.advance(300)
    queue.get_nowait().fail()
    clock.advance(900)
    queue.vacuum()
    assert_counts(queue, failed=1)
    clock.advance(101)
    assert queue.vacuum() == 1
    assert_counts(queue, total=1)
    assert store.check().ok


@pytest.mark.contract("KEP-06")
@pytest.mark.parametrize("again", ["requeue", "requeue_failed", "purge"])
def test_nothing_is_left_of_a_failure_that_is_over(store: Store, clock: Clock, again: str) -> None:
    queue = store.queue(keep_failed=1000)
    for _ in range(3):
        put_failed(queue)
    if again == "requeue":
        for job_id in (1, 2, 3):
            queue.requeue(job_id)
    elif again == "requeue_failed":
        assert queue.requeue_failed() == 3
    else:
        assert queue.purge("failed") == 3
    assert store.check().ok
    clock.advance(2000)
    assert queue.vacuum() == 0
    assert_counts(queue, pending=0 if again == "purge" else 3, total=3)


@pytest.mark.contract("KEP-06")
def test_thousands_of_failed_jobs_can_be_vacuumed(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000)
    queue.put_many(range(2000))
    with store.transaction() as transaction:
        for record in queue.get_many(2000, timeout=0):
            transaction.fail(record)
    clock.advance(1001)
    assert queue.vacuum() == 2000
    assert_counts(queue, total=2000)


@pytest.mark.contract("KEP-06", "KEP-04")
def test_failed_jobs_are_removed_by_itself_in_bounded_batches(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000)
    queue.put_many(range(1000))
    with store.transaction() as transaction:
        for record in queue.get_many(1000, timeout=0):
            transaction.fail(record)
    clock.advance(1001)
    left = [1000]
    while left[-1] and len(left) < 100:
        clock.advance(2)
        queue.put("x")
        queue.get_nowait().ack()
        left.append(queue.stats()["failed"])
    assert left[-1] == 0
    steps = [before - after for before, after in itertools.pairwise(left)]
    assert max(steps) <= 512  # a get and a look, with a batch of 256 each


@pytest.mark.contract("KEP-06", "KEP-03")
@pytest.mark.parametrize("options", [{}, {"keep_failed": 1000, "do_vacuum": False}])
def test_another_handle_does_not_remove_them(store: Store, clock: Clock, options: Any) -> None:
    other = store.queue(**options)
    put_failed(other)
    clock.advance(2000)
    put_done(other)
    if not options:
        other.vacuum()
    assert other.stats()["failed"] == 1
    with store.queue(keep_failed=1000) as queue:
        assert queue.stats()["failed"] == 0


@pytest.mark.contract("KEP-06")
def test_they_may_not_be_kept_at_all(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=0)
    put_failed(queue)
    clock.advance(0.001)
    assert_counts(queue, total=1)


@pytest.mark.contract("KEP-06", "RET-09")
def test_whatever_failed_them(store: Store, clock: Clock) -> None:
    queue = store.queue(keep_failed=1000, max_retries=0, lease_time=10)
    queue.put_many(["nacked", "leased", "undecodable"])
    queue.get_nowait().nack()
    held = queue.get_nowait()
    clock.advance(20)
    queue.recover()
    with store.queue(codec=Broken()) as broken, pytest.raises(QueueEmpty):
        broken.get_nowait()
    assert_counts(queue, failed=3)
    assert store.check().ok
    clock.advance(1001)
    assert queue.vacuum() == 3
    del held


class Broken:
    def encode(self, value: Any) -> bytes:
        return bytes(value)

    def decode(self, raw: bytes) -> Any:
        raise ValueError("cannot be decoded")


@pytest.mark.contract("CLK-01")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_clock_step_loses_and_doubles_nothing(store: Store, clock: Clock, step: float) -> None:
    queue = store.queue(do_vacuum=False)
    queue.put_many(range(10))
    queue.put("due in a minute", delay=60)
    held = queue.get_many(3, timeout=0)
    clock.step(step)
    queue.put_many(range(10, 15))
    queue.ack_many(held)
    seen = take_all(queue)
    assert [payload for payload in seen if payload != "due in a minute"] == list(range(3, 15))
    clock.step(-step)
    clock.advance(61)
    seen += take_all(queue)
    assert seen.count("due in a minute") == 1
    assert_counts(queue, done=16)


@pytest.mark.contract("CLK-01")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_order_does_not_follow_the_clock(queue: Queue, clock: Clock, step: float) -> None:
    queue.put("first")
    clock.step(step)
    queue.put("second")
    clock.step(-step)
    queue.put("third")
    assert take_all(queue) == ["first", "second", "third"]


@pytest.mark.contract("CLK-02")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_clock_step_takes_no_leased_job_away(store: Store, clock: Clock, step: float) -> None:
    queue = store.queue(lease_time=30)
    queue.put("x")
    record = queue.get_nowait()
    clock.step(step)
    assert queue.recover() == 0
    assert take_all(queue) == []
    clock.advance(31)
    assert queue.recover() == 1
    assert take_all(queue) == ["x"]
    assert record.job_id == 1


@pytest.mark.contract("CLK-03")
def test_a_due_time_is_a_time_of_day(queue: Queue, clock: Clock) -> None:
    queue.put("x", delay=DAY / 2)
    clock.step(DAY)
    assert take_all(queue) == ["x"]
    queue.put("y", delay=60)
    clock.step(-DAY)
    clock.advance(61)
    assert take_all(queue) == []
    clock.advance(DAY)
    assert take_all(queue) == ["y"]


@pytest.mark.contract("CLK-01")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_ended_jobs_are_vacuumed_after_a_clock_step(
    queue: Queue, clock: Clock, step: float
) -> None:
    put_done(queue)
    clock.step(step)
    put_done(queue)
    clock.advance(2 * DAY)
    queue.vacuum()
    assert_counts(queue, total=2)


@pytest.mark.contract("CLK-01")
@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_timeout_does_not_follow_the_clock(queue: Queue, clock: Clock, step: float) -> None:
    clock.step(step)
    with pytest.raises(QueueEmpty):
        queue.get(timeout=0.01)
    queue.put("x")
    assert queue.get(timeout=60).payload == "x"
