"""Looking jobs up without taking them."""

from __future__ import annotations

import pytest

from equeue_core import Job, JobNotFound, State
from tests.contract.helpers import (
    LATER,
    STATES,
    Backend,
    assert_counts,
    drain,
    ids,
    pages,
    put_cancelled,
    put_done,
    put_failed,
)


class LookupContract:
    @pytest.mark.contract("LST-01")
    def test_a_job_is_found_in_each_state(self, backend: Backend) -> None:
        queue = backend.open("mail", max_retries=4)
        found = {
            "done": put_done(queue),
            "failed": put_failed(queue),
            "cancelled": put_cancelled(queue),
            "scheduled": queue.put("s", delay=LATER),
            "running": queue.put("r", priority=9),
        }
        record = queue.get_nowait()
        found["pending"] = queue.put("p")
        for state, job_id in found.items():
            job = queue.job(job_id)
            assert isinstance(job, Job)
            assert job.job_id == job_id
            assert job.queue == "mail"
            assert job.state == State(state) == state
            assert job.max_retries is None
            assert job.enqueued_at > 0
        record.ack()

    @pytest.mark.contract("LST-01")
    def test_a_pending_jobs_fields(self, backend: Backend) -> None:
        queue = backend.open()
        job = queue.job(queue.put({"n": 1}, priority=-2, unique="k", expires_in=LATER))
        assert job.payload == {"n": 1}
        assert isinstance(job.payload_bytes, bytes)
        assert (job.priority, job.unique, job.attempts, job.retries) == (-2, "k", 0, 0)
        assert job.errors == ()
        assert (job.claimed_at, job.deadline, job.owner, job.finished_at) == (None,) * 4
        assert job.result is None

    @pytest.mark.contract("LST-01")
    def test_a_running_jobs_fields(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        record = queue.get_nowait()
        job = queue.job(job_id)
        assert (job.attempts, job.retries) == (1, 0)
        assert job.claimed_at >= job.enqueued_at
        assert job.owner is not None
        assert job.deadline is None
        record.ack()

    @pytest.mark.contract("LST-01", "LEA-01")
    def test_a_leased_jobs_deadline(self, backend: Backend) -> None:
        queue = backend.open(lease_time=LATER)
        job_id = queue.put("x")
        record = queue.get_nowait()
        job = queue.job(job_id)
        assert job.deadline == pytest.approx(job.claimed_at + LATER, abs=5)
        record.ack()

    @pytest.mark.contract("LST-01", "RES-01")
    def test_a_done_jobs_fields(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        queue.get_nowait().ack(result=[1, "two"])
        job = queue.job(job_id)
        assert job.result == [1, "two"]
        assert job.finished_at >= job.enqueued_at
        assert (job.payload, job.attempts) == ("x", 1)

    @pytest.mark.contract("LST-02")
    @pytest.mark.parametrize("job_id", [0, 1, 2**40, 2**70, -1])
    def test_a_job_that_never_was_is_not_found(self, backend: Backend, job_id: int) -> None:
        queue = backend.open()
        with pytest.raises(JobNotFound) as caught:
            queue.job(job_id)
        assert isinstance(caught.value, LookupError)

    @pytest.mark.contract("LST-02")
    def test_a_purged_job_is_not_found(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = put_done(queue)
        queue.purge("done")
        with pytest.raises(JobNotFound, match=str(job_id)):
            queue.job(job_id)

    @pytest.mark.contract("LST-03")
    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    def test_pages_hold_each_job_once(self, backend: Backend, state: str, limit: int) -> None:
        queue = backend.open()
        expected = []
        for number in range(7):
            make = {"done": put_done, "failed": put_failed, "cancelled": put_cancelled}.get(state)
            if make is not None:
                expected.append(make(queue, number))
            elif state == "scheduled":
                expected.append(queue.put(number, delay=LATER + number % 3))
            else:
                expected.append(queue.put(number, priority=number % 2))
        records = queue.get_many(7, timeout=0) if state == "running" else []
        queue.put("other", delay=LATER) if state != "scheduled" else queue.put("other")
        listed = pages(queue, state, limit)
        assert sorted(ids(listed)) == expected
        assert all(job.state == state for job in listed)
        assert ids(pages(queue, State(state), limit)) == ids(listed)
        queue.ack_many(records)

    @pytest.mark.contract("LST-03")
    @pytest.mark.parametrize("limit", [1, 4, 100])
    def test_pages_of_all_states_hold_each_job_once(self, backend: Backend, limit: int) -> None:
        queue = backend.open()
        for _ in range(3):
            put_done(queue)
            put_failed(queue)
            put_cancelled(queue)
        queue.put_many(range(3))
        queue.put_many(range(3), delay=LATER)
        records = queue.get_many(2, timeout=0)
        assert sorted(ids(pages(queue, None, limit))) == list(range(1, 16))
        queue.ack_many(records)

    @pytest.mark.contract("LST-03")
    def test_pending_jobs_are_listed_in_order_of_delivery(self, backend: Backend) -> None:
        queue = backend.open()
        for number in range(9):
            queue.put(number, priority=number % 3)
        listed = [job.payload for job in pages(queue, "pending", 2)]
        assert listed == drain(queue)

    @pytest.mark.contract("LST-03")
    def test_a_page_holds_a_hundred_unless_said_otherwise(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(range(101))
        assert len(queue.jobs()) == 100
        assert len(queue.jobs(limit=1000)) == 101

    @pytest.mark.contract("LST-04")
    def test_looking_changes_nothing(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x")
        before = queue.job(job_id)
        queue.jobs()
        queue.jobs("pending")
        assert queue.job(job_id) == before
        assert_counts(queue, pending=1)
        assert queue.get_nowait().attempt == 1

    @pytest.mark.contract("LST-03")
    def test_a_list_can_change_between_its_pages(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(range(6))
        page = queue.jobs("pending", limit=3)
        drain(queue)
        queue.put("new")
        rest = queue.jobs("pending", limit=3, after=page[-1])
        assert [job.payload for job in rest] == ["new"]
