"""Attempts, retries, FAILED, and what is remembered of each failure."""

from __future__ import annotations

from typing import Any

import pytest

from equeue_core import exponential_backoff
from tests.contract.helpers import LATER, Backend, assert_counts, drain, put_failed, state_of


class RetriesContract:
    @pytest.mark.contract("RET-01")
    @pytest.mark.parametrize("max_retries", [0, 1, 3, 10])
    def test_max_retries_plus_one_nacks_make_failed(
        self, backend: Backend, max_retries: int
    ) -> None:
        queue = backend.open(max_retries=max_retries)
        job_id = queue.put("x")
        for number in range(max_retries + 1):
            assert_counts(queue, pending=1)
            record = queue.get_nowait()
            assert (record.job_id, record.retries, record.attempt) == (job_id, number, number + 1)
            record.nack()
        assert_counts(queue, failed=1)
        assert queue.job(job_id).retries == max_retries + 1
        assert queue.job(job_id).attempts == max_retries + 1

    @pytest.mark.contract("RET-01")
    def test_max_retries_is_three_unless_said_otherwise(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        for _ in range(4):
            assert_counts(queue, pending=1)
            queue.get_nowait().nack()
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-02")
    def test_a_jobs_own_max_retries_goes_before_the_queues(self, backend: Backend) -> None:
        queue = backend.open(max_retries=5)
        job_id = queue.put("x", max_retries=0)
        assert queue.job(job_id).max_retries == 0
        queue.get_nowait().nack()
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-02")
    def test_a_jobs_own_max_retries_may_be_larger(self, backend: Backend) -> None:
        queue = backend.open(max_retries=0)
        queue.put("x", max_retries=2)
        for _ in range(3):
            assert_counts(queue, pending=1)
            queue.get_nowait().nack()
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-02", "BLK-01")
    def test_put_many_gives_each_job_the_same_max_retries(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(["a", "b"], max_retries=0)
        for _ in range(2):
            queue.get_nowait().nack()
        assert_counts(queue, failed=2)

    @pytest.mark.contract("RET-03")
    def test_a_release_spends_no_retry(self, backend: Backend) -> None:
        queue = backend.open(max_retries=0)
        queue.put("x")
        for attempt in range(1, 11):
            record = queue.get_nowait()
            assert (record.retries, record.attempt) == (0, attempt)
            record.release()
        assert_counts(queue, pending=1)

    @pytest.mark.contract("RET-04")
    def test_fail_fails_at_once(self, backend: Backend) -> None:
        queue = backend.open(max_retries=10)
        job_id = queue.put("x")
        queue.get_nowait().fail("no such address")
        assert_counts(queue, failed=1)
        (error,) = queue.job(job_id).errors
        assert (error.attempt, error.message) == (1, "no such address")

    @pytest.mark.contract("RET-05")
    def test_each_failed_attempt_is_recorded(self, backend: Backend) -> None:
        queue = backend.open(max_retries=2)
        job_id = queue.put("x")
        queue.get_nowait().nack("first")
        queue.get_nowait().release()
        queue.get_nowait().nack("third")
        queue.get_nowait().nack("fourth")
        job = queue.job(job_id)
        assert [(error.attempt, error.message) for error in job.errors] == [
            (1, "first"),
            (3, "third"),
            (4, "fourth"),
        ]
        times = [error.at for error in job.errors]
        assert times == sorted(times)
        assert times[0] >= job.enqueued_at

    @pytest.mark.contract("RET-05")
    def test_an_exception_is_recorded_with_its_traceback(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        record = queue.get_nowait()
        try:
            raise LookupError("no such row")
        except LookupError as error:
            record.nack(error)
        (recorded,) = queue.job(job_id).errors
        assert "no such row" in recorded.message
        assert "LookupError" in recorded.message
        assert "test_an_exception_is_recorded_with_its_traceback" in recorded.traceback

    @pytest.mark.contract("RET-05")
    def test_of_many_errors_the_first_and_the_latest_are_kept(self, backend: Backend) -> None:
        queue = backend.open(max_retries=20)
        job_id = queue.put("x")
        for number in range(1, 16):
            queue.get_nowait().nack(f"attempt {number}")
        kept = [error.attempt for error in queue.job(job_id).errors]
        assert kept == [1, 7, 8, 9, 10, 11, 12, 13, 14, 15]

    @pytest.mark.contract("RET-05")
    def test_errors_survive_closing(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = put_failed(queue)
        errors = queue.job(job_id).errors
        backend.reopen()
        assert backend.open().job(job_id).errors == errors
        assert len(errors) == 1

    @pytest.mark.contract("RET-05")
    def test_a_nack_without_a_reason_is_allowed(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        queue.get_nowait().nack()
        queue.get_nowait().fail()
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-06")
    def test_without_backoff_a_nacked_job_is_pending_at_once(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        queue.get_nowait().nack()
        assert_counts(queue, pending=1)

    @pytest.mark.contract("RET-06")
    @pytest.mark.parametrize("backoff", [LATER, int(LATER), lambda retries: LATER])
    def test_backoff_schedules_the_retry(self, backend: Backend, backoff: Any) -> None:
        queue = backend.open(backoff=backoff)
        job_id = queue.put("x")
        queue.get_nowait().nack("why")
        assert_counts(queue, scheduled=1)
        job = queue.job(job_id)
        assert job.due_at == pytest.approx(job.errors[0].at + LATER, abs=1)

    @pytest.mark.contract("RET-06")
    def test_a_backoff_callable_is_told_the_retries_so_far(self, backend: Backend) -> None:
        seen: list[int] = []

        def backoff(retries: int) -> float:
            seen.append(retries)
            return 0

        queue = backend.open(backoff=backoff, max_retries=3)
        queue.put("x")
        for _ in range(4):
            queue.get(timeout=60).nack()
        assert seen[:3] == [1, 2, 3]
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-06")
    def test_exponential_backoff_can_be_given(self, backend: Backend) -> None:
        queue = backend.open(backoff=exponential_backoff())
        queue.put("x")
        queue.get_nowait().nack()
        assert queue.stats()["pending"] + queue.stats()["scheduled"] == 1

    @pytest.mark.contract("RET-06")
    def test_a_nacks_own_delay_goes_before_backoff(self, backend: Backend) -> None:
        queue = backend.open(backoff=LATER)
        queue.put("x")
        queue.get_nowait().nack(delay=0)
        assert_counts(queue, pending=1)

    @pytest.mark.contract("RET-06", "DEL-05")
    def test_a_nack_can_be_delayed(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().nack("later", delay=LATER)
        assert_counts(queue, scheduled=1)
        assert queue.job(job_id).retries == 1

    @pytest.mark.contract("RET-06")
    def test_the_last_nack_fails_whatever_its_delay(self, backend: Backend) -> None:
        queue = backend.open(max_retries=0, backoff=LATER)
        queue.put("x")
        queue.get_nowait().nack(delay=LATER)
        assert_counts(queue, failed=1)

    @pytest.mark.contract("RET-03", "DEL-05")
    def test_a_release_can_be_delayed(self, backend: Backend) -> None:
        queue = backend.open(backoff=LATER)
        job_id = queue.put("x")
        queue.get_nowait().release(delay=LATER)
        assert_counts(queue, scheduled=1)
        assert queue.job(job_id).retries == 0

    @pytest.mark.contract("RET-07")
    def test_retries_survive_closing(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        queue.get_nowait().nack()
        queue.get_nowait().nack()
        backend.reopen()
        record = backend.open().get_nowait()
        assert (record.retries, record.attempt) == (2, 3)

    @pytest.mark.contract("RET-08")
    def test_a_failing_job_does_not_stop_the_others(self, backend: Backend) -> None:
        queue = backend.open(max_retries=1)
        bad = queue.put("bad", priority=-1)
        queue.put_many(["a", "b"])
        while (record := queue.get_nowait()).payload == "bad":
            record.nack()
        record.ack()
        assert state_of(queue, bad) == "failed"
        assert drain(queue) == ["b"]
