"""The counters: exact, never negative, never behind the jobs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from equeue_core import State
from tests.contract.helpers import (
    LATER,
    STATES,
    Backend,
    assert_counts,
    ids,
    pages,
    put_cancelled,
    put_done,
    put_failed,
    snapshot,
    wait_until,
)

VERBS = [
    *[
        "put",
        "put",
        "later",
        "get",
        "get",
        "ack",
        "nack",
        "fail",
        "release",
        "cancel",
        "requeue",
        "purge",
        "reopen",
    ]
]


def assert_consistent(queue: Any, highest_total: int = 0) -> int:
    """What holds of the counters at every moment; returns `total`."""
    counts = queue.stats()
    assert set(counts) == {*STATES, "total"}
    assert all(type(count) is int for count in counts.values())
    assert min(counts.values()) >= 0
    assert sum(counts[state] for state in STATES) <= counts["total"]
    assert counts["total"] >= highest_total
    return int(counts["total"])


class CountersContract:
    @pytest.mark.contract("CNT-01")
    def test_a_new_queue_counts_nothing(self, backend: Backend) -> None:
        queue = backend.open()
        assert_counts(queue)
        assert queue.qsize() == 0
        assert queue.empty() is True

    @pytest.mark.contract("CNT-01")
    def test_each_state_is_counted(self, backend: Backend) -> None:
        queue = backend.open()
        put_done(queue)
        put_failed(queue)
        put_cancelled(queue)
        queue.put("running")
        record = queue.get_nowait()
        queue.put("pending")
        queue.put("scheduled", delay=LATER)
        assert_counts(queue, pending=1, scheduled=1, running=1, done=1, failed=1, cancelled=1)
        record.ack()
        assert_counts(queue, pending=1, scheduled=1, done=2, failed=1, cancelled=1)

    @pytest.mark.contract("CNT-01")
    def test_qsize_is_what_is_pending(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b", "c"])
        queue.put("later", delay=LATER)
        record = queue.get_nowait()
        assert queue.qsize() == 2
        assert queue.empty() is False
        record.ack()

    @pytest.mark.contract("CNT-01")
    def test_a_queue_with_nothing_to_give_is_empty(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("later", delay=LATER)
        assert queue.empty() is True

    @pytest.mark.contract("CNT-02", "CNT-03", "CNT-04", "CNT-05")
    def test_they_hold_through_every_verb(self, backend: Backend) -> None:
        choose = random.Random(20_240_229)
        queue = backend.open(max_retries=1)
        held: list[Any] = []
        total = 0
        removed = False
        for step in range(400):
            verb = choose.choice(VERBS)
            if verb == "put":
                queue.put(step, priority=choose.randrange(3))
            elif verb == "later":
                queue.put(step, delay=LATER)
            elif verb == "get" and not queue.empty():
                held.append(queue.get_nowait())
            elif verb in ("ack", "nack", "fail", "release") and held:
                getattr(held.pop(choose.randrange(len(held))), verb)()
            elif verb == "cancel" and (found := queue.jobs("scheduled", limit=1)):
                queue.cancel(found[0].job_id)
            elif verb == "requeue":
                queue.requeue_failed()
            elif verb == "purge" and step % 5 == 0:
                removed = queue.purge(choose.choice(["done", "cancelled"])) > 0 or removed
            elif verb == "reopen" and not held:
                backend.reopen()
                queue = backend.open(max_retries=1)
            total = assert_consistent(queue, total)
            counts = queue.stats()
            if not removed:
                assert sum(counts[state] for state in STATES) == counts["total"]
        for state in STATES:
            assert len(pages(queue, state, limit=50)) == queue.stats()[state]

    @pytest.mark.contract("CNT-02")
    def test_the_states_add_up_until_something_is_purged(self, backend: Backend) -> None:
        queue = backend.open()
        put_failed(queue)
        put_done(queue)
        queue.put("x")
        assert_counts(queue, pending=1, done=1, failed=1)
        queue.purge("failed")
        assert_counts(queue, pending=1, done=1, total=3)

    @pytest.mark.contract("CNT-03")
    def test_total_never_falls(self, backend: Backend) -> None:
        queue = backend.open(vacuum_interval=0.001)
        put_done(queue)
        put_failed(queue)
        put_cancelled(queue)
        for state in ("failed", "pending", "scheduled"):
            queue.purge(state)

        def only_total_left() -> bool:
            queue.vacuum()
            return bool(queue.stats() == dict.fromkeys(STATES, 0) | {"total": 3})

        wait_until(only_total_left, "the rest is vacuumed")
        backend.reopen()
        assert_counts(backend.open(), total=3)

    @pytest.mark.contract("CNT-03")
    def test_total_survives_closing(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(range(7))
        backend.reopen()
        queue = backend.open()
        assert_counts(queue, pending=7)
        queue.put(8)
        assert queue.stats()["total"] == 8

    @pytest.mark.contract("CNT-06")
    def test_recovering_twice_is_recovering_once(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b"])
        held = queue.get_nowait()
        queue.recover()
        before = snapshot(queue)
        assert queue.recover() == 0
        assert snapshot(queue) == before
        held.ack()
        assert queue.recover() == 0
        assert_counts(queue, pending=1, done=1)

    @pytest.mark.contract("CNT-04")
    def test_counts_are_those_of_the_listings(self, backend: Backend) -> None:
        queue = backend.open()
        put_done(queue)
        put_failed(queue)
        put_cancelled(queue)
        queue.put("scheduled", delay=LATER)
        queue.put_many(["a", "b"])
        held = queue.get_nowait()
        for state in State:
            assert len(queue.jobs(state)) == queue.stats()[state.value]
        assert sorted(ids(queue.jobs())) == [1, 2, 3, 4, 5, 6]
        held.ack()
