"""Cancel, requeue, purge, retention."""

from __future__ import annotations

from typing import Any

import pytest

from equeue_core import JobNotFound, JobStateError, QueueEmpty, State
from tests.contract.helpers import (
    LATER,
    STATES,
    Backend,
    assert_counts,
    drain,
    put_cancelled,
    put_done,
    put_failed,
    snapshot,
    state_of,
    wait_until,
)


def assert_refused(queue: Any, verb: str, job_id: int, error: type[Exception]) -> None:
    """The verb raises the error, names the job, and changes nothing."""
    before = snapshot(queue)
    with pytest.raises(error, match=str(job_id)):
        getattr(queue, verb)(job_id)
    assert snapshot(queue) == before


class ManagementContract:
    @pytest.mark.contract("MAN-01")
    @pytest.mark.parametrize("options", [{}, {"delay": LATER}], ids=["pending", "scheduled"])
    def test_a_waiting_job_can_be_cancelled(
        self, backend: Backend, options: dict[str, Any]
    ) -> None:
        queue = backend.open()
        job_id = queue.put("x", **options)
        queue.cancel(job_id)
        assert_counts(queue, cancelled=1)
        assert state_of(queue, job_id) == "cancelled"
        assert queue.job(job_id).finished_at is not None
        with pytest.raises(QueueEmpty):
            queue.get_nowait()

    @pytest.mark.contract("MAN-01")
    def test_cancelling_takes_one_job_out_of_the_middle(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(list("abcde"))
        queue.cancel(3)
        assert drain(queue) == ["a", "b", "d", "e"]

    @pytest.mark.contract("MAN-01")
    def test_a_job_that_was_put_back_can_be_cancelled(self, backend: Backend) -> None:
        queue = backend.open()
        for give_back in ("nack", "release"):
            job_id = queue.put(give_back, priority=4)
            getattr(queue.get_nowait(), give_back)()
            queue.cancel(job_id)
        assert_counts(queue, cancelled=2)

    @pytest.mark.contract("MAN-02")
    def test_a_job_that_does_not_wait_is_not_cancelled(self, backend: Backend) -> None:
        queue = backend.open()
        for make in (put_done, put_failed, put_cancelled):
            assert_refused(queue, "cancel", make(queue), JobStateError)
        running = queue.put("x")
        record = queue.get_nowait()
        assert_refused(queue, "cancel", running, JobStateError)
        record.ack()

    @pytest.mark.contract("MAN-02", "MAN-04")
    @pytest.mark.parametrize("verb", ["cancel", "requeue"])
    def test_a_job_that_is_not_there_is_not_found(self, backend: Backend, verb: str) -> None:
        queue = backend.open()
        assert_refused(queue, verb, 77, JobNotFound)

    @pytest.mark.contract("MAN-03")
    @pytest.mark.parametrize("make", [put_failed, put_cancelled, put_done])
    def test_an_ended_job_can_be_requeued(self, backend: Backend, make: Any) -> None:
        queue = backend.open()
        job_id = make(queue, "again", priority=3)
        queue.requeue(job_id)
        assert_counts(queue, pending=1)
        record = queue.get_nowait()
        assert (record.job_id, record.payload, record.priority) == (job_id, "again", 3)
        assert record.retries == 0
        record.ack()
        assert_counts(queue, done=1)

    @pytest.mark.contract("MAN-03")
    def test_a_requeued_job_has_all_its_retries_again(self, backend: Backend) -> None:
        queue = backend.open(max_retries=1)
        job_id = queue.put("x")
        for _ in range(2):
            queue.get_nowait().nack("before")
        queue.requeue(job_id)
        for _ in range(2):
            assert_counts(queue, pending=1)
            queue.get_nowait().nack("after")
        assert_counts(queue, failed=1)

    @pytest.mark.contract("MAN-03")
    def test_a_requeued_jobs_old_records_stay_stale(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        old = queue.get_nowait()
        old.fail()
        queue.requeue(job_id)
        current = queue.get_nowait()
        with pytest.raises(Exception, match=str(job_id)):
            old.ack()
        current.ack()
        assert_counts(queue, done=1)

    @pytest.mark.contract("MAN-03")
    def test_a_requeued_job_goes_behind_its_equals(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = put_failed(queue, "failed")
        queue.put("waiting")
        queue.requeue(job_id)
        queue.put("new")
        assert drain(queue) == ["waiting", "failed", "new"]

    @pytest.mark.contract("MAN-04")
    def test_a_live_job_is_not_requeued(self, backend: Backend) -> None:
        queue = backend.open()
        assert_refused(queue, "requeue", queue.put("s", delay=LATER), JobStateError)
        running = queue.put("r")
        record = queue.get_nowait()
        assert_refused(queue, "requeue", running, JobStateError)
        assert_refused(queue, "requeue", queue.put("p"), JobStateError)
        record.ack()

    @pytest.mark.contract("MAN-05")
    def test_all_failed_jobs_can_be_requeued(self, backend: Backend) -> None:
        queue = backend.open()
        for _ in range(5):
            put_failed(queue)
        put_cancelled(queue)
        put_done(queue)
        assert queue.requeue_failed() == 5
        assert_counts(queue, pending=5, cancelled=1, done=1)
        assert queue.requeue_failed() == 0
        assert drain(queue) == ["bad"] * 5

    @pytest.mark.contract("MAN-05")
    def test_thousands_of_failed_jobs_can_be_requeued(self, backend: Backend) -> None:
        queue = backend.open(max_retries=0)
        queue.put_many(range(2500))
        for record in queue.get_many(2500, timeout=0):
            record.fail()
        assert queue.requeue_failed() == 2500
        assert_counts(queue, pending=2500)

    @pytest.mark.contract("MAN-06")
    @pytest.mark.parametrize("state", [state for state in STATES if state != "running"])
    @pytest.mark.parametrize("as_enum", [False, True])
    def test_one_state_can_be_purged(self, backend: Backend, state: str, as_enum: bool) -> None:
        queue = backend.open()
        for _ in range(2):
            put_done(queue)
            put_failed(queue)
            put_cancelled(queue)
        queue.put_many(["p"] * 2)
        queue.put_many(["s"] * 2, delay=LATER)
        assert queue.purge(State(state) if as_enum else state) == 2
        expected = dict.fromkeys(("pending", "scheduled", "done", "failed", "cancelled"), 2)
        expected[state] = 0
        assert_counts(queue, **expected, total=10)
        assert queue.jobs(state) == []
        assert queue.purge(state) == 0

    @pytest.mark.contract("MAN-06")
    def test_thousands_of_jobs_can_be_purged(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(range(2500))
        assert queue.purge("pending") == 2500
        assert_counts(queue, total=2500)

    @pytest.mark.contract("MAN-07")
    def test_running_jobs_are_not_purged(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        with pytest.raises((ValueError, JobStateError)):
            queue.purge("running")
        assert_counts(queue, running=1)
        record.ack()

    @pytest.mark.contract("MAN-07")
    @pytest.mark.parametrize("state", ["", "PENDING", "gone", 3, None])
    def test_an_unknown_state_is_an_error(self, backend: Backend, state: Any) -> None:
        queue = backend.open()
        queue.put("x")
        with pytest.raises((ValueError, TypeError)):
            queue.purge(state)
        assert_counts(queue, pending=1)

    @pytest.mark.contract("KEP-01")
    def test_done_and_cancelled_jobs_are_kept_for_a_while(self, backend: Backend) -> None:
        queue = backend.open()
        put_done(queue)
        put_cancelled(queue)
        assert queue.vacuum() == 0
        assert_counts(queue, done=1, cancelled=1)

    @pytest.mark.contract("KEP-02")
    @pytest.mark.parametrize("make", [put_done, put_cancelled])
    def test_they_are_vacuumed_afterwards(self, backend: Backend, make: Any) -> None:
        queue = backend.open(vacuum_interval=0.001)
        job_id = make(queue)

        def gone() -> bool:
            queue.vacuum()
            try:
                queue.job(job_id)
            except JobNotFound:
                return True
            return False

        wait_until(gone, "the job is vacuumed")
        assert_counts(queue, total=1)

    @pytest.mark.contract("KEP-05")
    @pytest.mark.parametrize("make", [put_done, put_cancelled])
    def test_or_they_are_not_kept_at_all(self, backend: Backend, make: Any) -> None:
        queue = backend.open(keep_done=False)
        job_id = make(queue)
        assert_counts(queue, total=1)
        with pytest.raises(JobNotFound):
            queue.job(job_id)

    @pytest.mark.contract("KEP-05")
    def test_nor_those_that_are_done_in_one_commit(self, backend: Backend) -> None:
        queue = backend.open(keep_done=False)
        queue.put_many(["a", "b"])
        queue.put("c", unique="c", max_retries=1)
        queue.ack_many(queue.get_many(3))
        assert_counts(queue, total=3)
        queue.put("c", unique="c")  # its key is free again
        assert_counts(queue, pending=1, total=4)

    @pytest.mark.contract("KEP-03")
    def test_failed_jobs_are_kept(self, backend: Backend) -> None:
        queue = backend.open(vacuum_interval=0.001)
        put_failed(queue)
        put_done(queue)

        def vacuumed() -> bool:
            queue.vacuum()
            return bool(queue.stats()["done"] == 0)

        wait_until(vacuumed, "the done job is vacuumed")
        assert_counts(queue, failed=1, total=2)
