"""Small helpers that every subject uses."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

STATES = ("pending", "scheduled", "running", "done", "failed", "cancelled")

WATCHDOG = 60.0
"""Seconds after which a wait is a failure. Never a measure of anything."""

LATER = 3600.0
"""Seconds: a delay that doesn't end within a test."""


class Backend(Protocol):
    """What a binding provides."""

    def open(self, name: str = "default", **options: Any) -> Any: ...

    def reopen(self) -> None: ...


def assert_counts(queue: Any, *, total: int | None = None, **counts: int) -> None:
    """The counters are exactly these, the states not named are 0, `total` is their sum."""
    expected = dict.fromkeys(STATES, 0) | counts
    expected["total"] = sum(expected.values()) if total is None else total
    assert queue.stats() == expected


def drain(queue: Any) -> list[Any]:
    """Take and acknowledge all that is pending; the payloads in order of delivery."""
    payloads = []
    while not queue.empty():
        record = queue.get(timeout=WATCHDOG)
        payloads.append(record.payload)
        record.ack()
    return payloads


def state_of(queue: Any, job_id: int) -> str:
    """A job's state as a plain string."""
    return str(queue.job(job_id).state.value)


def put_failed(queue: Any, payload: Any = "bad", **options: Any) -> int:
    """Bring a new job to FAILED; the queue must have no other pending job."""
    job_id = int(queue.put(payload, **options))
    record = queue.get(timeout=WATCHDOG)
    assert record.job_id == job_id
    record.fail("broken")
    return job_id


def put_done(queue: Any, payload: Any = "good", **options: Any) -> int:
    """Bring a new job to DONE; the queue must have no other pending job."""
    job_id = int(queue.put(payload, **options))
    record = queue.get(timeout=WATCHDOG)
    assert record.job_id == job_id
    record.ack()
    return job_id


def put_cancelled(queue: Any, payload: Any = "gone", **options: Any) -> int:
    """Bring a new job to CANCELLED."""
    job_id = int(queue.put(payload, **options))
    queue.cancel(job_id)
    return job_id


def pages(queue: Any, state: Any = None, limit: int = 3) -> list[Any]:
    """All jobs of a state, read in pages."""
    found: list[Any] = []
    after = None
    while page := queue.jobs(state, limit=limit, after=after):
        assert len(page) <= limit
        found.extend(page)
        after = page[-1]
    return found


def ids(jobs: Iterable[Any]) -> list[int]:
    """The ids of jobs or records."""
    return [job.job_id for job in jobs]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Ask until the answer is yes. For conditions that no event announces."""
    end = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < end, f"gave up waiting until {what}"
        time.sleep(0.005)


def snapshot(queue: Any) -> Any:
    """All that can be seen of a queue, to compare before and after.

    Without deadlines: they are told in wall time, which is computed anew at each look.
    """
    jobs = [dataclasses.replace(job, deadline=None) for job in queue.jobs(limit=1000)]
    return queue.stats(), jobs
