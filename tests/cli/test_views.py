"""What `equeue top` asks of a queue of any kind: the latest failures, and what has waited longest."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rq

from equeue_core import Queue, Store, queues
from equeue_rq import LMDBRedis
from tests.cli.counting import Counting

Clock = Callable[[float], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets what jobs of the core are put and ended at."""
    return lambda moment: monkeypatch.setattr("equeue_core._clock.wall", lambda: moment)


def fail(queue: Queue[Any], error: str = "bad") -> int:
    record = queue.get(timeout=0)
    record.fail(error)
    return int(record.job_id)


def view(store: Store, name: str = "mail") -> queues.QueueView:
    return queues.queue(store, name)


def test_the_latest_failures_come_first(store_path: Path, at: Clock) -> None:
    with Store(store_path) as store:
        queue = store.queue("mail")
        queue.put_many(range(3))
        records = [queue.get(timeout=0) for _ in range(3)]
        for moment, number in enumerate((1, 2, 0)):
            at(1000.0 + moment)
            records[number].fail("bad")
        found = list(view(store).latest_failed(2))
        assert [each.job_id for each in found] == ["1", "3"]
        assert [each.details["finished_at"] for each in found] == [1002.0, 1001.0]
        assert [each.job_id for each in view(store).latest_failed(9)] == ["1", "3", "2"]


def test_the_failures_of_other_queues_and_kinds_are_none(store_path: Path) -> None:
    with Store(store_path) as store:
        first, queue, last = map(store.queue, ("first", "mail", "last"))
        for each in (first, queue, last):
            each.put(1)
            each.get(timeout=0).ack()
            each.put(2, unique="key")
        assert list(view(store).latest_failed(9)) == []
        fail(first)
        fail(last)
        assert list(view(store).latest_failed(9)) == []
        assert [each.queue for each in view(store, "last").latest_failed(9)] == ["last"]


def test_what_waits_longest(store_path: Path, at: Clock) -> None:
    with Store(store_path) as store:
        queue = store.queue("mail")
        at(1000.0)
        queue.put("later", delay=50)
        assert view(store).oldest_pending() is None
        for moment, priority in ((1001.0, 3), (1002.0, -7), (1003.0, 3), (1004.0, 0)):
            at(moment)
            queue.put(priority, priority=priority)
        assert view(store).oldest_pending() == 1001.0
        at(1010.0)
        taken = [queue.get(timeout=0) for _ in range(3)]
        assert [each.payload for each in taken] == [-7, 0, 3]
        assert view(store).oldest_pending() == 1003.0
        fail(queue)
        assert view(store).oldest_pending() is None


def test_what_waits_longest_is_found_without_a_walk(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(store_path) as store:
        queue = store.queue("mail")
        for priority in (0, 1, 2):
            queue.put_many(range(1000), priority=priority)
        found, steps = view(store), list[str]()
        real = queue._environment.read
        monkeypatch.setattr(
            queue._environment,
            "read",
            lambda operation: real(lambda txn: operation(Counting(txn, steps))),
        )
        assert found.oldest_pending() is not None
        assert steps.count("value") == 3
        assert len(steps) < 30


def test_jobs_of_rq(store_path: Path) -> None:
    began = time.time()
    with LMDBRedis(store_path) as connection, Store(store_path) as store:
        queue = rq.Queue(connection=connection)
        failing = [queue.enqueue("os.path.nope", number).id for number in range(3)]
        found = view(store, "rq:default")
        assert began - 1 <= (found.oldest_pending() or 0) <= time.time()
        assert list(found.latest_failed(9)) == []
        worker = rq.SimpleWorker([queue], connection=connection)
        worker.work(burst=True, logging_level="CRITICAL")
        assert found.oldest_pending() is None
        # RQ's ends are whole seconds: make them differ.
        for number, job_id in enumerate(failing):
            connection.zadd(queue.failed_job_registry.key, {job_id: 2e9 + number})
        assert [each.job_id for each in found.latest_failed(2)] == failing[:0:-1]
        latest = list(found.latest_failed(9))
        assert [each.state for each in latest] == ["failed"] * 3
        assert all("nope" in each.errors[0].message for each in latest)
        jobs = list(found.jobs("failed", 2))
        assert [each.job_id for each in jobs] == failing[:2]
        connection.hdel(f"rq:job:{failing[2]}", "data")
        connection.delete(f"rq:job:{failing[1]}")
        unreadable, readable = found.latest_failed(3)
        assert (unreadable.job_id, readable.job_id) == (failing[2], failing[0])
        assert "cannot read" in unreadable.summary
