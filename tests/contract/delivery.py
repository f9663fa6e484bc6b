"""In which order jobs come, and that they come whole."""

from __future__ import annotations

import queue as stdlib_queue
from typing import Any

import pytest

from equeue_core import EQueueError, QueueEmpty
from tests.contract.helpers import WATCHDOG, Backend, drain, put_done


class DeliveryContract:
    @pytest.mark.contract("ORD-01")
    def test_equal_priorities_come_in_the_order_of_put(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(50):
            queue.put(number)
        assert drain(queue) == list(range(50))

    @pytest.mark.contract("ORD-02")
    def test_a_smaller_priority_comes_first(self, backend: Backend) -> None:
        queue = backend.open()
        for priority in (5, -3, 0, 100_000, -100_000, 5, -3):
            queue.put(priority, priority=priority)
        assert drain(queue) == [-100_000, -3, -3, 0, 5, 5, 100_000]

    @pytest.mark.contract("ORD-01", "ORD-02")
    def test_order_within_a_priority_is_first_in_first_out(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(30):
            queue.put([number % 3, number], priority=number % 3)
        expected = [[level, n] for level in range(3) for n in range(30) if n % 3 == level]
        assert drain(queue) == expected

    @pytest.mark.contract("ORD-02")
    def test_the_default_priority_is_zero(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("late", priority=1)
        queue.put("default")
        queue.put("early", priority=-1)
        record = queue.get_nowait()
        assert (record.payload, record.priority) == ("early", -1)
        assert queue.get_nowait().priority == 0

    @pytest.mark.contract("ORD-03")
    def test_a_nacked_job_goes_behind_its_equals(self, backend: Backend) -> None:
        queue = backend.open()
        for name in ("a", "b", "c"):
            queue.put(name)
        queue.put("low", priority=1)
        queue.get_nowait().nack()
        assert drain(queue) == ["b", "c", "a", "low"]

    @pytest.mark.contract("ORD-04")
    def test_a_released_job_goes_back_to_its_place(self, backend: Backend) -> None:
        queue = backend.open()
        for name in ("a", "b", "c"):
            queue.put(name)
        first, second = queue.get_nowait(), queue.get_nowait()
        second.release()
        first.release()
        assert drain(queue) == ["a", "b", "c"]

    @pytest.mark.contract("ORD-05")
    def test_ids_start_at_one_and_grow_by_one(self, backend: Backend) -> None:
        queue = backend.open()
        assert [queue.put(None) for _ in range(5)] == [1, 2, 3, 4, 5]

    @pytest.mark.contract("ORD-05")
    def test_ids_are_never_used_again(self, backend: Backend) -> None:
        queue = backend.open()
        for _ in range(3):
            put_done(queue)
        queue.purge("done")
        backend.reopen()
        assert backend.open().put("next") == 4

    @pytest.mark.contract("ORD-05", "ORD-06")
    def test_queues_of_one_store_are_independent(self, backend: Backend) -> None:
        one, two = backend.open("one"), backend.open("two")
        assert (one.put("x"), two.put("y"), two.put("z")) == (1, 1, 2)
        assert drain(two) == ["y", "z"]
        assert drain(one) == ["x"]
        assert one.stats()["total"] == 1

    @pytest.mark.contract("ORD-07")
    def test_jobs_and_their_order_survive_closing(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(10):
            queue.put(number, priority=-number)
        backend.reopen()
        assert drain(backend.open()) == list(range(9, -1, -1))

    @pytest.mark.contract("ORD-08")
    @pytest.mark.parametrize(
        "payload",
        [
            None,
            True,
            0,
            -1,
            2**63,
            1.5,
            "",
            "text with \N{SNOWMAN} and \0",
            b"",
            b"\x00\xff",
            [],
            {},
            [1, [2, [3]]],
            {"task": "send", "to": ["a", "b"], "deep": {"n": None}},
            {1: "integer key"},
            "x" * 1_000_000,
        ],
        ids=lambda value: type(value).__name__ + str(len(repr(value))),
    )
    def test_a_payload_comes_back_equal(self, backend: Backend, payload: Any) -> None:
        queue = backend.open()
        queue.put(payload)
        record = queue.get_nowait()
        assert record.payload == payload
        assert type(record.payload) is type(payload)

    @pytest.mark.contract("ORD-08")
    def test_a_record_says_what_it_is(self, backend: Backend) -> None:
        queue = backend.open("emails")
        job_id = queue.put({"to": "someone"}, priority=7)
        record = queue.get_nowait()
        assert record.job_id == job_id
        assert record.payload == {"to": "someone"}
        assert (record.attempt, record.retries, record.priority) == (1, 0, 7)
        assert record.queue == "emails"
        assert isinstance(record.enqueued_at, float)

    @pytest.mark.contract("ORD-09")
    @pytest.mark.parametrize("timeout", [0, 0.0, 0.001])
    def test_an_empty_queue_says_so(self, backend: Backend, timeout: float) -> None:
        queue = backend.open()
        with pytest.raises(QueueEmpty) as caught:
            queue.get(timeout=timeout)
        assert isinstance(caught.value, stdlib_queue.Empty)
        assert isinstance(caught.value, EQueueError)
        assert str(caught.value)

    @pytest.mark.contract("ORD-09")
    def test_get_nowait_does_not_wait(self, backend: Backend) -> None:
        queue = backend.open()
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        queue.put("there")
        assert queue.get_nowait().payload == "there"

    @pytest.mark.contract("ORD-09")
    def test_get_with_a_timeout_takes_what_is_there(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("there")
        assert queue.get(timeout=WATCHDOG).payload == "there"

    @pytest.mark.contract("ORD-08")
    def test_put_nowait_is_put(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_nowait("late", priority=2)
        queue.put_nowait("early", priority=1)
        assert drain(queue) == ["early", "late"]
