"""Results, and waiting for all to be done."""

from __future__ import annotations

from typing import Any

import pytest

from equeue_core import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    JoinTimeout,
    PayloadError,
    ResultTimeout,
)
from tests.contract.helpers import (
    LATER,
    WATCHDOG,
    Backend,
    assert_counts,
    drain,
    put_cancelled,
    put_done,
    put_failed,
)


class ResultsContract:
    @pytest.mark.contract("RES-01")
    @pytest.mark.parametrize(
        "result", [None, False, 0, 1.5, "text", b"\0", [1, [2]], {"a": {"b": None}}, "x" * 100_000]
    )
    def test_a_result_comes_back_equal(self, backend: Backend, result: Any) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().ack(result=result)
        found = queue.result(job_id, timeout=0)
        assert found == result
        assert type(found) is type(result)

    @pytest.mark.contract("RES-01")
    def test_without_a_result_it_is_none(self, backend: Backend) -> None:
        queue = backend.open()
        assert queue.result(put_done(queue), timeout=WATCHDOG) is None

    @pytest.mark.contract("RES-01")
    def test_a_result_can_be_read_again_and_after_closing(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().ack("result")
        assert queue.result(job_id) == "result"
        backend.reopen()
        assert backend.open().result(job_id) == "result"

    @pytest.mark.contract("RES-02")
    def test_a_failed_jobs_result_raises(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().fail("no such address")
        with pytest.raises(JobFailed, match="no such address"):
            queue.result(job_id, timeout=0)

    @pytest.mark.contract("RES-02")
    def test_a_cancelled_jobs_result_raises(self, backend: Backend) -> None:
        queue = backend.open()
        with pytest.raises(JobCancelled):
            queue.result(put_cancelled(queue), timeout=0)

    @pytest.mark.contract("RES-02")
    def test_a_job_that_is_not_there_has_no_result(self, backend: Backend) -> None:
        queue = backend.open()
        with pytest.raises(JobNotFound):
            queue.result(99, timeout=0)
        job_id = put_done(queue)
        queue.purge("done")
        with pytest.raises(JobNotFound):
            queue.result(job_id, timeout=0)

    @pytest.mark.contract("RES-03")
    @pytest.mark.parametrize("timeout", [0, 0.001])
    def test_a_live_jobs_result_times_out(self, backend: Backend, timeout: float) -> None:
        queue = backend.open()
        scheduled = queue.put("later", delay=LATER)
        running = queue.put("now")
        record = queue.get_nowait()
        pending = queue.put("next")
        for job_id in (scheduled, running, pending):
            with pytest.raises(ResultTimeout) as caught:
                queue.result(job_id, timeout=timeout)
            assert isinstance(caught.value, TimeoutError)
        record.ack()

    @pytest.mark.contract("RES-04")
    def test_a_result_that_cannot_be_encoded_keeps_the_claim(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        record = queue.get_nowait()
        with pytest.raises(PayloadError):
            record.ack(result=object())
        assert_counts(queue, running=1)
        record.ack(result="fine")
        assert_counts(queue, done=1)

    @pytest.mark.contract("RES-05")
    def test_an_idle_queue_is_joined_at_once(self, backend: Backend) -> None:
        queue = backend.open()
        queue.join(timeout=0)
        put_failed(queue)
        put_cancelled(queue)
        put_done(queue)
        queue.join(timeout=0)
        queue.join()

    @pytest.mark.contract("RES-05")
    @pytest.mark.parametrize("timeout", [0, 0.001])
    def test_joining_a_busy_queue_times_out(self, backend: Backend, timeout: float) -> None:
        queue = backend.open()

        def assert_busy() -> None:
            with pytest.raises(JoinTimeout) as caught:
                queue.join(timeout=timeout)
            assert isinstance(caught.value, TimeoutError)

        job_id = queue.put("later", delay=LATER)
        assert_busy()
        queue.cancel(job_id)
        queue.put("now")
        assert_busy()
        record = queue.get_nowait()
        assert_busy()
        record.ack()
        assert drain(queue) == []
        queue.join(timeout=0)
