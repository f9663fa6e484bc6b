"""Pause and resume."""

from __future__ import annotations

import pytest

from equeue_core import QueueEmpty
from tests.contract.helpers import LATER, Backend, assert_counts, drain


class PausingContract:
    @pytest.mark.contract("PAU-01")
    def test_a_paused_queue_gives_nothing(self, backend: Backend) -> None:
        queue = backend.open()
        assert queue.paused is False
        queue.put("x")
        queue.pause()
        assert queue.paused is True
        for take in (queue.get_nowait, lambda: queue.get(timeout=0.001)):
            with pytest.raises(QueueEmpty):
                take()
        with pytest.raises(QueueEmpty):
            queue.get_many(5, timeout=0)
        assert_counts(queue, pending=1)
        queue.resume()
        assert queue.paused is False
        assert drain(queue) == ["x"]

    @pytest.mark.contract("PAU-02")
    def test_a_paused_queue_takes_jobs_and_completions(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put_many(list("abc"))
        records = queue.get_many(3, timeout=0)
        queue.pause()
        queue.put("new")
        records[0].ack()
        records[1].nack()
        records[2].release(delay=LATER)
        assert_counts(queue, pending=2, scheduled=1, done=1)
        queue.cancel(4)
        queue.resume()
        assert drain(queue) == ["b"]

    @pytest.mark.contract("PAU-01")
    def test_pausing_twice_is_pausing_once(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        queue.pause()
        queue.pause()
        queue.resume()
        queue.resume()
        assert drain(queue) == ["x"]

    @pytest.mark.contract("PAU-03")
    def test_a_pause_survives_closing(self, backend: Backend) -> None:
        queue = backend.open()
        queue.put("x")
        queue.pause()
        backend.reopen()
        queue = backend.open()
        assert queue.paused is True
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        queue.resume()
        assert drain(queue) == ["x"]

    @pytest.mark.contract("PAU-01")
    def test_a_pause_is_that_of_one_queue(self, backend: Backend) -> None:
        one, two = backend.open("one"), backend.open("two")
        one.put("x")
        two.put("y")
        one.pause()
        assert drain(two) == ["y"]
        assert two.paused is False
