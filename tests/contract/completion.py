"""Who may complete a job, and what happens to those who may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from equeue_core import ClaimLost, EQueueError, QueueCorrupted, QueueEmpty
from tests.contract.helpers import (
    LATER,
    Backend,
    assert_counts,
    drain,
    snapshot,
    state_of,
    wait_until,
)

COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    "ack": lambda record: record.ack(),
    "ack with result": lambda record: record.ack(result="late"),
    "nack": lambda record: record.nack("late"),
    "nack with delay": lambda record: record.nack(delay=1.0),
    "fail": lambda record: record.fail("late"),
    "release": lambda record: record.release(),
    "release with delay": lambda record: record.release(delay=1.0),
    "extend": lambda record: record.extend(10.0),
}

every_completion = pytest.mark.parametrize("complete", COMPLETIONS.values(), ids=COMPLETIONS)


def assert_refused(queue: Any, record: Any, complete: Callable[[Any], Any]) -> None:
    """The completion raises ClaimLost and leaves the queue as it was."""
    before = snapshot(queue)
    with pytest.raises(ClaimLost) as caught:
        complete(record)
    assert isinstance(caught.value, QueueCorrupted)
    assert isinstance(caught.value, EQueueError)
    assert str(record.job_id) in str(caught.value)
    assert snapshot(queue) == before


class CompletionContract:
    @pytest.mark.contract("ACK-01")
    def test_an_acknowledged_job_is_done_and_stays_done(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().ack()
        assert_counts(queue, done=1)
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        backend.reopen()
        assert state_of(backend.open(), job_id) == "done"
        assert_counts(backend.open(), done=1)

    @pytest.mark.contract("ACK-02", "ACK-07")
    @every_completion
    def test_a_done_job_is_not_completed_again(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        record.ack()
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-03", "ACK-07")
    @every_completion
    def test_a_pending_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        record.nack()
        assert_counts(queue, pending=1)
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-03", "ACK-07")
    @every_completion
    def test_a_released_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        record.release()
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-03", "ACK-07")
    @every_completion
    def test_a_scheduled_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        record.nack(delay=LATER)
        assert_counts(queue, scheduled=1)
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-04", "ACK-07")
    @every_completion
    def test_a_failed_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open(max_retries=0)
        queue.put("x")
        record = queue.get_nowait()
        record.nack()
        assert_counts(queue, failed=1)
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-05", "ACK-07")
    @every_completion
    def test_a_vacuumed_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open(vacuum_interval=0.001)
        queue.put("x")
        record = queue.get_nowait()
        record.ack()

        def vacuumed() -> bool:
            queue.vacuum()
            return bool(queue.stats()["done"] == 0)

        wait_until(vacuumed, "the job is vacuumed")
        assert_refused(queue, record, complete)
        assert_counts(queue, total=1)

    @pytest.mark.contract("ACK-05", "ACK-07")
    @every_completion
    def test_a_purged_job_is_not_completed(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        record.ack()
        assert queue.purge("done") == 1
        assert_refused(queue, record, complete)

    @pytest.mark.contract("ACK-06", "ACK-07")
    @every_completion
    def test_a_record_is_stale_once_its_job_is_claimed_again(
        self, backend: Backend, complete: Callable[[Any], Any]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        stale = queue.get_nowait()
        stale.release()
        current = queue.get_nowait()
        assert current.job_id == stale.job_id
        assert_refused(queue, stale, complete)
        current.ack()
        assert_counts(queue, done=1)

    @pytest.mark.contract("ACK-08")
    def test_processing_acknowledges_when_the_block_ends(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        with queue.processing(timeout=0) as record:
            assert record.payload == "x"
            assert_counts(queue, running=1)
        assert_counts(queue, done=1)

    @pytest.mark.contract("ACK-08")
    def test_processing_nacks_when_the_block_raises(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        with pytest.raises(ZeroDivisionError), queue.processing(timeout=0):
            raise ZeroDivisionError("by nothing")
        assert_counts(queue, pending=1)
        (error,) = queue.job(job_id).errors
        assert "by nothing" in error.message
        assert "ZeroDivisionError" in error.traceback
        assert queue.get_nowait().retries == 1

    @pytest.mark.contract("ACK-08")
    @pytest.mark.parametrize("reason", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_processing_releases_when_the_program_stops(
        self, backend: Backend, reason: type[BaseException]
    ) -> None:
        queue = backend.open()
        queue.put("x")
        with pytest.raises(reason), queue.processing(timeout=0):
            raise reason
        assert_counts(queue, pending=1)
        record = queue.get_nowait()
        assert (record.retries, record.attempt) == (0, 2)

    @pytest.mark.contract("ACK-08")
    def test_processing_leaves_a_completed_job_alone(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        with queue.processing(timeout=0) as record:
            record.fail("decided inside")
        assert_counts(queue, failed=1)

    @pytest.mark.contract("ACK-08")
    def test_processing_an_empty_queue_raises_before_the_block(self, backend: Backend) -> None:
        queue = backend.open()
        with pytest.raises(QueueEmpty), queue.processing(timeout=0):
            pytest.fail("the block ran")

    @pytest.mark.contract("ACK-01")
    def test_completing_one_job_leaves_the_others(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(5):
            queue.put(number)
        records = [queue.get_nowait() for _ in range(5)]
        records[3].ack()
        records[1].fail("no")
        records[0].release()
        assert_counts(queue, pending=1, running=2, done=1, failed=1)
        assert drain(queue) == [0]
