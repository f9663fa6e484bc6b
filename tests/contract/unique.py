"""Unique keys: one live job each."""

from __future__ import annotations

from typing import Any

import pytest

from equeue_core import DuplicateJob
from tests.contract.helpers import LATER, Backend, assert_counts, drain, snapshot
from tests.contract.scheduling import wait_for_expiry


def assert_taken(queue: Any, key: str, job_id: int) -> None:
    """A put with the key is refused, names the job that has it, and changes nothing."""
    before = snapshot(queue)
    with pytest.raises(DuplicateJob) as caught:
        queue.put("second", unique=key)
    assert caught.value.job_id == job_id
    assert str(job_id) in str(caught.value)
    assert snapshot(queue) == before


def assert_free(queue: Any, key: str) -> None:
    """A put with the key succeeds."""
    queue.cancel(queue.put("probe", unique=key))


class UniqueContract:
    @pytest.mark.contract("UNI-01")
    def test_a_key_is_taken_while_its_job_is_live(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique="k")
        assert queue.job(job_id).unique == "k"
        assert_taken(queue, "k", job_id)
        record = queue.get_nowait()
        assert_taken(queue, "k", job_id)
        record.nack()
        assert_taken(queue, "k", job_id)
        queue.get_nowait().release(delay=LATER)
        assert_taken(queue, "k", job_id)

    @pytest.mark.contract("UNI-01")
    def test_a_scheduled_jobs_key_is_taken(self, backend: Backend) -> None:
        queue = backend.open()
        assert_taken(queue, "k", queue.put("x", unique="k", delay=LATER))

    @pytest.mark.contract("UNI-01")
    def test_a_key_stays_taken_through_closing(self, backend: Backend) -> None:
        job_id = backend.open().put("x", unique="k")
        backend.reopen()
        assert_taken(backend.open(), "k", job_id)

    @pytest.mark.contract("UNI-02")
    def test_a_done_jobs_key_is_free(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x", unique="k")
        queue.get_nowait().ack()
        assert_free(queue, "k")

    @pytest.mark.contract("UNI-02")
    def test_a_failed_jobs_key_is_free(self, backend: Backend) -> None:
        queue = backend.open(max_retries=0)
        queue.put("x", unique="k")
        queue.get_nowait().nack()
        assert_free(queue, "k")
        queue.put("x", unique="k")
        queue.get_nowait().fail()
        assert_free(queue, "k")

    @pytest.mark.contract("UNI-02")
    def test_a_cancelled_jobs_key_is_free(self, backend: Backend) -> None:
        queue = backend.open()
        for options in ({}, {"delay": LATER}):
            queue.cancel(queue.put("x", unique="k", **options))
            assert_free(queue, "k")

    @pytest.mark.contract("UNI-02")
    @pytest.mark.parametrize(("state", "options"), [("pending", {}), ("scheduled", {"delay": 60})])
    def test_a_purged_jobs_key_is_free(
        self, backend: Backend, state: str, options: dict[str, Any]
    ) -> None:
        queue = backend.open()
        queue.put("x", unique="k", **options)
        assert queue.purge(state) == 1
        assert_free(queue, "k")

    @pytest.mark.contract("UNI-02")
    def test_an_expired_jobs_key_is_free(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique="k", expires_in=0.01)
        wait_for_expiry(queue, job_id)
        assert_free(queue, "k")

    @pytest.mark.contract("UNI-03")
    def test_a_requeued_job_takes_its_key_again(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique="k")
        queue.cancel(job_id)
        queue.requeue(job_id)
        assert_taken(queue, "k", job_id)

    @pytest.mark.contract("UNI-03")
    def test_a_job_whose_key_is_taken_is_not_requeued(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique="k")
        queue.get_nowait().fail()
        other = queue.put("y", unique="k")
        before = snapshot(queue)
        with pytest.raises(DuplicateJob) as caught:
            queue.requeue(job_id)
        assert caught.value.job_id == other
        assert snapshot(queue) == before

    @pytest.mark.contract("UNI-03")
    def test_requeueing_all_failed_passes_over_taken_keys(self, backend: Backend) -> None:
        queue = backend.open()
        for _ in range(2):
            queue.put("x", unique="k")
            queue.get_nowait().fail()
        queue.put("free")
        queue.get_nowait().fail()
        assert queue.requeue_failed() == 2
        assert_counts(queue, pending=2, failed=1)

    @pytest.mark.contract("UNI-04")
    def test_keys_are_those_of_one_queue(self, backend: Backend) -> None:
        one, two = backend.open("one"), backend.open("two")
        one.put("x", unique="k")
        two.put("x", unique="k")
        assert drain(one) == drain(two) == ["x"]

    @pytest.mark.contract("UNI-04")
    @pytest.mark.parametrize(
        "key",
        ["k", "", "\N{PARTY POPPER}", "a\0b", "a/b", "k" * 5000],
        ids=lambda key: key[:3] + ".",
    )
    def test_any_text_is_a_key(self, backend: Backend, key: str) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique=key)
        assert queue.job(job_id).unique == key
        assert_taken(queue, key, job_id)
        queue.put("y", unique=key + "?")
        queue.get_nowait().ack()
        assert_free(queue, key)

    @pytest.mark.contract("UNI-04")
    def test_long_keys_are_told_apart_by_their_end(self, backend: Backend) -> None:
        queue = backend.open()
        first = queue.put("x", unique="k" * 3000 + "1")
        queue.put("x", unique="k" * 3000 + "2")
        assert_taken(queue, "k" * 3000 + "1", first)

    @pytest.mark.contract("UNI-01")
    def test_a_stale_completion_does_not_free_a_key(self, backend: Backend) -> None:
        queue = backend.open()
        job_id = queue.put("x", unique="k")
        stale = queue.get_nowait()
        stale.release()
        held = queue.get_nowait()
        with pytest.raises(Exception, match=str(job_id)):
            stale.ack()
        assert_taken(queue, "k", job_id)
        held.ack()
        assert_free(queue, "k")
