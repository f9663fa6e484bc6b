"""Waits: as long as asked, and no longer than needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import JoinTimeout, Queue, QueueEmpty, ResultTimeout
from tests.contract.helpers import LATER, WATCHDOG, assert_counts
from tests.core.children import child

WAITS: dict[str, tuple[Callable[[Any, float], Any], type[Exception]]] = {
    "get": (lambda queue, timeout: queue.get(timeout=timeout), QueueEmpty),
    "get_many": (lambda queue, timeout: queue.get_many(3, timeout=timeout), QueueEmpty),
    "processing": (lambda queue, timeout: queue.processing(timeout).__enter__(), QueueEmpty),
    "join": (lambda queue, timeout: queue.join(timeout=timeout), JoinTimeout),
    "result": (lambda queue, timeout: queue.result(1, timeout=timeout), ResultTimeout),
}


@pytest.mark.contract("HND-10")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("timeout", [0.001, 0.1, 1.0])
def test_a_wait_that_times_out_waits_that_long(queue: Queue, wait: Any, timeout: float) -> None:
    queue.put("later", delay=LATER)
    verb, error = wait
    start = time.monotonic()
    with pytest.raises(error):
        verb(queue, timeout)
    assert timeout <= time.monotonic() - start < timeout + WATCHDOG


@pytest.mark.contract("HND-10")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("timeout", [0, 0.0, -1.0])
def test_a_timeout_of_zero_or_less_does_not_wait(queue: Queue, wait: Any, timeout: float) -> None:
    queue.put("later", delay=LATER)
    verb, error = wait
    start = time.monotonic()
    for _ in range(5):
        with pytest.raises((error, ValueError)):
            verb(queue, timeout)
    assert time.monotonic() - start < WATCHDOG


@pytest.mark.contract("HND-10")
def test_a_huge_timeout_is_no_error(queue: Queue) -> None:
    queue.put("x")
    held = queue.get(timeout=1e300)
    assert held.payload == "x"
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(queue.get(timeout=1e18)))
    thread.start()
    thread.join(0.05)
    queue.put("y")
    thread.join(WATCHDOG)
    assert [record.payload for record in got] == ["y"]


class Waiter:
    """A thread in a wait, and what came of it."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._outcome.append(wait()))
        self._thread.start()
        self._thread.join(0.05)  # let it fall asleep; it must make no difference

    def outcome(self) -> Any:
        self._thread.join(WATCHDOG)
        assert not self._thread.is_alive(), "the wait did not end"
        return self._outcome[0]


def take(queue: Queue) -> Waiter:

    def get() -> Any:
        with queue.processing(timeout=WATCHDOG) as record:
            return record.payload

    return Waiter(get)


@pytest.mark.contract("HND-11")
def test_a_put_wakes_a_getter(queue: Queue) -> None:
    waiter = take(queue)
    queue.put("x")
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
def test_a_put_through_another_handle_wakes_a_getter(queue: Queue) -> None:
    waiter = take(queue)
    with Queue(queue.path) as other:
        other.put("x")
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
def test_a_put_in_another_process_wakes_a_getter(queue: Queue, path: Path) -> None:
    waiter = take(queue)
    with child("Queue(path).put('x'); say('put'); hear()", path) as other:
        assert other.hear() == "put"
        assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
def test_a_transactions_put_wakes_a_getter(queue: Queue) -> None:
    waiter = take(queue)
    with queue.store.transaction() as tx:
        tx.put(queue, "x")
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
def test_a_put_of_many_wakes_many_getters(queue: Queue) -> None:
    waiters = [take(queue) for _ in range(5)]
    queue.put_many(range(5))
    assert sorted(waiter.outcome() for waiter in waiters) == list(range(5))


@pytest.mark.contract("HND-11")
@pytest.mark.parametrize("give_back", ["nack", "release"])
def test_a_job_given_back_wakes_a_getter(queue: Queue, give_back: str) -> None:
    queue.put("x")
    record = queue.get_nowait()
    waiter = take(queue)
    getattr(record, give_back)()
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
def test_a_dropped_record_wakes_a_getter(queue: Queue) -> None:
    queue.put("x")
    record = queue.get_nowait()
    waiter = take(queue)
    del record
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11")
@pytest.mark.parametrize("again", [lambda q: q.requeue(1), lambda q: q.requeue_failed()])
def test_a_requeued_job_wakes_a_getter(queue: Queue, again: Any) -> None:
    queue.put("x")
    queue.get_nowait().fail()
    waiter = take(queue)
    again(queue)
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11", "PAU-04")
def test_resuming_wakes_the_getters(queue: Queue) -> None:
    queue.pause()
    queue.put_many(["x", "x", "x"])
    waiters = [take(queue) for _ in range(3)]
    queue.resume()
    assert [waiter.outcome() for waiter in waiters] == ["x", "x", "x"]


@pytest.mark.contract("HND-11", "DEL-03")
def test_a_job_that_comes_due_wakes_a_getter(queue: Queue) -> None:
    waiter = take(queue)
    queue.put("x", delay=0.1)
    assert waiter.outcome() == "x"


@pytest.mark.contract("HND-11", "DEL-03")
def test_the_earlier_of_two_due_times_ends_the_wait(queue: Queue) -> None:
    queue.put("much later", delay=LATER)
    waiter = take(queue)
    queue.put("soon", delay=0.05)
    assert waiter.outcome() == "soon"


@pytest.mark.contract("HND-11", "LEA-02")
def test_a_lease_that_expires_wakes_a_getter(path: Path) -> None:
    with Queue(path, sync="off", lease_time=0.1) as slow, Queue(path) as queue:
        slow.put("x")
        held = slow.get_nowait()
        waiter = take(queue)
        assert waiter.outcome() == "x"
        assert held.payload == "x"


@pytest.mark.contract("RES-06")
@pytest.mark.parametrize("end", ["ack", "nack", "fail"])
def test_a_jobs_end_wakes_who_joins(queue: Queue, end: str) -> None:
    queue.put("x", max_retries=0)
    record = queue.get_nowait()
    waiter = Waiter(lambda: queue.join(timeout=WATCHDOG))
    getattr(record, end)()
    assert waiter.outcome() is None


@pytest.mark.contract("RES-06")
def test_the_last_cancel_wakes_who_joins(queue: Queue) -> None:
    job_id = queue.put("x", delay=LATER)
    waiter = Waiter(lambda: queue.join(timeout=WATCHDOG))
    queue.cancel(job_id)
    assert waiter.outcome() is None


@pytest.mark.contract("RES-06")
@pytest.mark.parametrize("state", ["pending", "scheduled"])
def test_a_purge_wakes_who_joins(queue: Queue, state: str) -> None:
    queue.put("x", delay=LATER if state == "scheduled" else None)
    waiter = Waiter(lambda: queue.join(timeout=WATCHDOG))
    queue.purge(state)
    assert waiter.outcome() is None


@pytest.mark.contract("RES-06")
def test_joining_waits_for_all(queue: Queue) -> None:
    queue.put_many(range(50))
    waiter = Waiter(lambda: (queue.join(timeout=WATCHDOG), queue.stats()["done"]))
    for _ in range(50):
        queue.get_nowait().ack()
    assert waiter.outcome() == (None, 50)


@pytest.mark.contract("RES-07")
def test_an_ack_wakes_who_waits_for_the_result(queue: Queue) -> None:
    job_id = queue.put("x")
    waiters = [Waiter(lambda: queue.result(job_id, timeout=WATCHDOG)) for _ in range(3)]
    queue.get_nowait().ack(result=42)
    assert [waiter.outcome() for waiter in waiters] == [42, 42, 42]


@pytest.mark.contract("RES-07")
def test_a_failure_wakes_who_waits_for_the_result(queue: Queue) -> None:
    job_id = queue.put("x")

    def wait() -> str:
        try:
            queue.result(job_id, timeout=WATCHDOG)
        except Exception as error:
            return type(error).__name__
        return "no error"

    waiter = Waiter(wait)
    queue.get_nowait().fail()
    assert waiter.outcome() == "JobFailed"
    job_id = queue.put("x", delay=LATER)
    waiter = Waiter(wait)
    queue.cancel(job_id)
    assert waiter.outcome() == "JobCancelled"


@pytest.mark.contract("RES-07")
def test_a_result_can_be_awaited_in_another_process(queue: Queue, path: Path) -> None:
    job_id = queue.put("x")
    with child(
        "say(Queue(path).result(int(sys.argv[2]), timeout=60)); say('joining')\n"
        "Queue(path).join(timeout=60); say('joined')",
        path,
        job_id,
    ) as other:
        queue.put("y")
        queue.get_nowait().ack(result="made here")
        assert other.hear() == "made here"
        assert other.hear() == "joining"
        queue.get_nowait().ack()
        assert other.hear() == "joined"


@pytest.mark.contract("HND-11")
def test_no_wake_up_is_lost_between_many_threads(path: Path) -> None:
    with Queue(path, sync="off") as queue:
        got: list[Any] = []

        def consume() -> None:
            for _ in range(100):
                record = queue.get(timeout=WATCHDOG)
                got.append(record.payload)
                record.ack()

        threads = [threading.Thread(target=consume) for _ in range(6)]
        for thread in threads:
            thread.start()
        for number in range(600):
            queue.put(number)
        for thread in threads:
            thread.join(WATCHDOG)
        assert sorted(got) == list(range(600))
        assert_counts(queue, done=600)
