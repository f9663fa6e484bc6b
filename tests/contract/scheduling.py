"""Delays, times and expiry, as far as no clock has to move."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest

from equeue_core import JobCancelled, QueueEmpty
from tests.contract.helpers import (
    LATER,
    WATCHDOG,
    Backend,
    assert_counts,
    drain,
    state_of,
    wait_until,
)


def wait_for_expiry(queue: Any, job_id: int) -> None:
    """Let a waiting job's time run out."""
    expires_at = queue.job(job_id).expires_at
    wait_until(lambda: time.time() > expires_at, "the job's time is over")


class SchedulingContract:
    @pytest.mark.contract("DEL-01")
    def test_a_delayed_job_is_scheduled_and_not_delivered(self, backend: Backend) -> None:
        queue = backend.open()
        before = time.time()
        job_id = queue.put("x", delay=LATER)
        assert_counts(queue, scheduled=1)
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        due = queue.job(job_id).due_at
        assert before + LATER - 1 <= due <= time.time() + LATER + 1

    @pytest.mark.contract("DEL-01")
    def test_a_delay_of_zero_is_no_delay(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x", delay=0)
        assert_counts(queue, pending=1)

    @pytest.mark.contract("DEL-02")
    def test_run_at_means_the_same_in_each_form(self, backend: Backend) -> None:
        queue = backend.open()
        moment = float(int(time.time() + LATER))
        aware_utc = dt.datetime.fromtimestamp(moment, dt.timezone.utc)
        aware_other = aware_utc.astimezone(dt.timezone(dt.timedelta(hours=-7, minutes=-30)))
        naive_local = dt.datetime.fromtimestamp(moment)  # noqa: DTZ006
        for run_at in (moment, int(moment), aware_utc, aware_other, naive_local):
            job_id = queue.put("x", run_at=run_at)
            assert queue.job(job_id).due_at == moment
        assert_counts(queue, scheduled=5)

    @pytest.mark.contract("DEL-02")
    @pytest.mark.parametrize(
        "run_at",
        [1.0, 0, dt.datetime(2001, 1, 1), dt.datetime(2001, 1, 1, tzinfo=dt.timezone.utc)],  # noqa: DTZ001
    )
    def test_a_time_in_the_past_is_now(self, backend: Backend, run_at: Any) -> None:
        queue = backend.open()
        queue.put("x", run_at=run_at)
        assert queue.get(timeout=WATCHDOG).payload == "x"

    @pytest.mark.contract("DEL-03")
    def test_a_wait_ends_when_a_job_comes_due(self, backend: Backend) -> None:
        queue = backend.open()
        start = time.time()
        queue.put("x", delay=0.05)
        record = queue.get(timeout=WATCHDOG)
        assert record.payload == "x"
        assert start + 0.05 <= time.time() < start + WATCHDOG

    @pytest.mark.contract("DEL-03")
    def test_jobs_that_come_due_keep_their_priority(self, backend: Backend) -> None:
        queue = backend.open()
        moment = time.time() + 0.05
        queue.put("late", priority=2, run_at=moment)
        queue.put("early", priority=1, run_at=moment)
        queue.put("sentinel", priority=3, run_at=moment)
        wait_until(lambda: time.time() > moment, "they are due")
        records = [queue.get(timeout=WATCHDOG) for _ in range(3)]
        assert [record.payload for record in records] == ["early", "late", "sentinel"]

    @pytest.mark.contract("DEL-04")
    def test_a_scheduled_job_survives_closing(self, backend: Backend) -> None:
        job_id = backend.open().put("x", delay=LATER)
        due = backend.open().job(job_id).due_at
        backend.reopen()
        queue = backend.open()
        assert_counts(queue, scheduled=1)
        assert queue.job(job_id).due_at == due

    @pytest.mark.contract("EXP-01")
    def test_a_job_that_waits_too_long_is_cancelled(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("stale", expires_in=0.01)
        queue.put("fresh", priority=1)
        wait_for_expiry(queue, job_id)
        assert drain(queue) == ["fresh"]
        assert state_of(queue, job_id) == "cancelled"
        assert_counts(queue, done=1, cancelled=1)

    @pytest.mark.contract("EXP-01")
    def test_a_scheduled_job_that_waits_too_long_is_cancelled(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("stale", delay=LATER, expires_in=0.01)
        wait_for_expiry(queue, job_id)
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        assert state_of(queue, job_id) == "cancelled"

    @pytest.mark.contract("EXP-01", "RES-02", "RES-05")
    def test_who_waits_for_a_job_hears_of_its_expiry(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", expires_in=0.01)
        with pytest.raises(JobCancelled):
            queue.result(job_id, timeout=WATCHDOG)
        queue.put("y", delay=LATER, expires_in=0.01)
        queue.join(timeout=WATCHDOG)
        assert_counts(queue, cancelled=2)

    @pytest.mark.contract("EXP-02")
    def test_a_job_within_its_time_is_delivered(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", expires_in=LATER)
        job = queue.job(job_id)
        assert job.expires_at == pytest.approx(job.enqueued_at + LATER, abs=1)
        assert drain(queue) == ["x"]

    @pytest.mark.contract("EXP-02")
    def test_without_expires_in_a_job_never_expires(self, backend: Backend) -> None:
        queue = backend.open()
        assert queue.job(queue.put("x")).expires_at is None
