"""Many jobs in one commit."""

from __future__ import annotations

import pytest

from equeue_core import ClaimLost, PayloadError, QueueEmpty
from tests.contract.helpers import LATER, WATCHDOG, Backend, assert_counts, drain, ids, snapshot


class BulkContract:
    @pytest.mark.contract("BLK-01")
    def test_put_many_keeps_the_order(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("first")
        assert queue.put_many(["a", "b", "c"]) == [2, 3, 4]
        queue.put("last")
        assert drain(queue) == ["first", "a", "b", "c", "last"]

    @pytest.mark.contract("BLK-01")
    def test_put_many_takes_any_iterable(self, backend: Backend) -> None:
        queue = backend.open()
        assert queue.put_many(number for number in range(3)) == [1, 2, 3]
        assert queue.put_many(()) == []
        assert_counts(queue, pending=3)

    @pytest.mark.contract("BLK-01")
    def test_put_many_gives_each_job_the_same_options(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b"], priority=3, delay=LATER)
        assert_counts(queue, scheduled=2)
        assert {job.priority for job in queue.jobs()} == {3}

    @pytest.mark.contract("BLK-01")
    def test_put_many_puts_all_or_nothing(self, backend: Backend) -> None:
        queue = backend.open()
        with pytest.raises(PayloadError):
            queue.put_many(["good", object(), "good"])
        assert_counts(queue)
        assert queue.put("next") == 1

    @pytest.mark.contract("BLK-01")
    def test_put_many_puts_nothing_when_the_iterable_raises(self, backend: Backend) -> None:
        def broken():  # type: ignore[no-untyped-def]
            yield "good"
            raise LookupError("no more")

        queue = backend.open()
        with pytest.raises(LookupError, match="no more"):
            queue.put_many(broken())
        assert_counts(queue)

    @pytest.mark.contract("BLK-01")
    def test_put_many_puts_many(self, backend: Backend) -> None:
        queue = backend.open()
        assert queue.put_many(range(5000)) == list(range(1, 5001))
        assert [record.payload for record in queue.get_many(5000, timeout=0)] == list(range(5000))

    @pytest.mark.contract("BLK-02")
    def test_get_many_takes_up_to_n_in_order(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(5):
            queue.put(number, priority=-number)
        first, rest = queue.get_many(3, timeout=0), queue.get_many(10, timeout=WATCHDOG)
        assert [record.payload for record in first] == [4, 3, 2]
        assert [record.payload for record in rest] == [1, 0]
        with pytest.raises(QueueEmpty):
            queue.get_many(3, timeout=0)

    @pytest.mark.contract("BLK-02")
    def test_each_of_many_is_completed_on_its_own(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b", "c"])
        first, second, third = queue.get_many(3, timeout=0)
        first.ack()
        second.nack()
        third.fail()
        assert_counts(queue, pending=1, done=1, failed=1)

    @pytest.mark.contract("BLK-03")
    def test_ack_many_completes_all(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(range(10))
        records = queue.get_many(10, timeout=0)
        queue.ack_many(records[:7])
        assert_counts(queue, running=3, done=7)
        queue.ack_many([])
        queue.ack_many(iter(records[7:]))
        assert_counts(queue, done=10)

    @pytest.mark.contract("BLK-03")
    def test_ack_many_refuses_all_when_one_claim_is_lost(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b", "c"])
        records = queue.get_many(3, timeout=0)
        records[1].ack()
        before = snapshot(queue)
        with pytest.raises(ClaimLost):
            queue.ack_many(records)
        assert snapshot(queue) == before
        queue.ack_many([records[0], records[2]])
        assert sorted(ids(queue.jobs("done"))) == [1, 2, 3]

    @pytest.mark.contract("BLK-03")
    def test_ack_many_refuses_the_same_record_twice(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("a")
        record = queue.get_nowait()
        with pytest.raises(ValueError, match="twice"):
            queue.ack_many([record, record])
        assert_counts(queue, running=1)
        record.ack()
