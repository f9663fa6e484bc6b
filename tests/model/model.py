"""What a store does, in plain Python: lists and numbers, no storage, no concurrency.

Time stands still between two calls of `tick`, in which whatever is due by then happens: jobs come due, leases
end, lifetimes end, old jobs go, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from equeue_core import ClaimLost, DuplicateJob, JobNotFound, JobStateError, QueueEmpty

WAITING = ("pending", "scheduled")
LIVE = (*WAITING, "running")
ENDED = ("done", "failed", "cancelled")
STATES = (*LIVE, *ENDED)

KEEP = 60.0
"""Seconds that done and cancelled jobs are kept."""

KEEP_FAILED = 250.0
"""Seconds that failed jobs are kept."""


@dataclass
class ModelJob:
    """A job, with all that can be looked up of it."""

    job_id: int
    payload: Any
    priority: float
    enqueued_at: float
    place: int
    state: str = "pending"
    attempts: int = 0
    retries: int = 0
    max_retries: int | None = None
    unique: str | None = None
    due_at: float | None = None
    expires_at: float | None = None
    claimed_at: float | None = None
    deadline: float | None = None
    allowed: int = 0
    finished_at: float | None = None
    result: Any = None
    errors: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class ModelRecord:
    """A claim: which delivery of which job."""

    queue: str
    job_id: int
    attempt: int


class ModelQueue:
    """One queue."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobs: dict[int, ModelJob] = {}
        self.total = 0
        self.paused = False
        self._places = 0

    # Looking

    def stats(self) -> dict[str, int]:
        counts = dict.fromkeys(STATES, 0)
        for job in self.jobs.values():
            counts[job.state] += 1
        return counts | {"total": self.total}

    def job(self, job_id: int) -> ModelJob:
        if job_id not in self.jobs:
            raise JobNotFound(job_id)
        return self.jobs[job_id]

    def listed(self, state: str) -> list[ModelJob]:
        """The jobs in a state, in the order in which they are listed."""
        order = {
            "pending": lambda job: (job.priority, job.place),
            "scheduled": lambda job: (job.due_at, job.job_id),
            "done": lambda job: (int(job.finished_at), job.job_id),
            "cancelled": lambda job: (int(job.finished_at), job.job_id),
        }.get(state, lambda job: job.job_id)
        return sorted((job for job in self.jobs.values() if job.state == state), key=order)

    # Putting

    def put(
        self,
        now: float,
        payload: Any,
        *,
        priority: float = 0,
        delay: float | None = None,
        expires_in: float | None = None,
        unique: str | None = None,
        max_retries: int | None = None,
    ) -> int:
        self._check_unique(unique)
        self.total += 1
        job = ModelJob(
            self.total,
            payload,
            priority,
            now,
            self._next_place(),
            unique=unique,
            max_retries=max_retries,
            expires_at=None if expires_in is None else now + expires_in,
        )
        if delay:
            job.state, job.due_at = "scheduled", now + delay
        self.jobs[job.job_id] = job
        return job.job_id

    def _check_unique(self, unique: str | None) -> None:
        if unique is None:
            return
        for job in self.jobs.values():
            if job.unique == unique and job.state in LIVE:
                raise DuplicateJob("taken", job.job_id)

    def _next_place(self) -> int:
        self._places += 1
        return self._places

    # Claiming

    def get(
        self, now: float, monotonic: float, n: int, lease: float | None, max_retries: int
    ) -> list[ModelJob]:
        taken = [] if self.paused else self.listed("pending")[:n]
        if not taken:
            raise QueueEmpty
        for job in taken:
            job.state, job.claimed_at, job.expires_at = "running", now, None
            job.deadline = None if lease is None else monotonic + lease
            job.allowed = max_retries if job.max_retries is None else job.max_retries
            job.attempts += 1
        return taken

    # Completing

    def held(self, record: ModelRecord) -> ModelJob:
        job = self.jobs.get(record.job_id)
        if job is None or job.state != "running" or job.attempts != record.attempt:
            raise ClaimLost(record.job_id)
        return job

    def ack(self, now: float, record: ModelRecord, result: Any = None) -> None:
        job = self.held(record)
        self._leave_hand(job)
        job.state, job.finished_at, job.result = "done", now, result

    def nack(self, now: float, record: ModelRecord, error: str | None, delay: float | None) -> None:
        self._retry(now, self.held(record), error, delay or 0.0, at_its_place=False)

    def fail(self, now: float, record: ModelRecord, error: str | None) -> None:
        job = self.held(record)
        self._leave_hand(job)
        self._note(job, error)
        job.state, job.finished_at = "failed", now

    def release(self, now: float, record: ModelRecord, delay: float | None) -> None:
        job = self.held(record)
        self._leave_hand(job)
        if delay:
            job.state, job.due_at = "scheduled", now + delay
        else:
            job.state = "pending"

    def extend(self, monotonic: float, record: ModelRecord, seconds: float) -> None:
        self.held(record).deadline = monotonic + seconds

    def _retry(
        self, now: float, job: ModelJob, error: str | None, delay: float, at_its_place: bool
    ) -> None:
        self._leave_hand(job)
        job.retries += 1
        self._note(job, error)
        if job.retries > job.allowed:
            job.state, job.finished_at = "failed", now
        elif delay:
            job.state, job.due_at = "scheduled", now + delay
        else:
            job.state = "pending"
            if not at_its_place:
                job.place = self._next_place()

    @staticmethod
    def _leave_hand(job: ModelJob) -> None:
        job.claimed_at = job.deadline = None

    @staticmethod
    def _note(job: ModelJob, error: str | None) -> None:
        if error is not None:
            job.errors.append((job.attempts, error))
            if len(job.errors) > 10:
                del job.errors[1]

    # Managing

    def cancel(self, now: float, job_id: int) -> None:
        job = self.job(job_id)
        if job.state not in WAITING:
            raise JobStateError(job_id)
        self._cancel(now, job)

    @staticmethod
    def _cancel(now: float, job: ModelJob) -> None:
        job.state, job.finished_at, job.due_at, job.expires_at = "cancelled", now, None, None

    def requeue(self, job_id: int) -> None:
        job = self.job(job_id)
        if job.state not in ENDED:
            raise JobStateError(job_id)
        self._check_unique(job.unique)
        job.state, job.retries, job.finished_at, job.result = "pending", 0, None, None
        job.place = self._next_place()

    def requeue_failed(self) -> int:
        number = 0
        for job in self.listed("failed"):
            try:
                self.requeue(job.job_id)
            except DuplicateJob:
                continue
            number += 1
        return number

    def purge(self, state: str) -> int:
        if state == "running":
            raise JobStateError(state)
        found = self.listed(state)
        for job in found:
            del self.jobs[job.job_id]
        return len(found)

    def give_everything_back(self) -> None:
        """What closing the store does."""
        for job in self.listed("running"):
            self._leave_hand(job)
            job.state = "pending"

    def tick(self, now: float, monotonic: float) -> None:
        """Everything that is due happens."""
        for job in self.listed("scheduled"):
            if job.due_at is not None and job.due_at <= now:
                job.state, job.due_at, job.place = "pending", None, self._next_place()
        for job in sorted(self.listed("running"), key=lambda job: (job.deadline or 0, job.job_id)):
            if job.deadline is not None and job.deadline <= monotonic:
                self._retry(now, job, "its lease ended", 0, at_its_place=True)
        for state in WAITING:
            for job in self.listed(state):
                if job.expires_at is not None and job.expires_at <= now:
                    self._cancel(now, job)
                    self._note(job, "expired before it was claimed")
        for state, keep in (("done", KEEP), ("cancelled", KEEP), ("failed", KEEP_FAILED)):
            for job in self.listed(state):
                if job.finished_at is not None and job.finished_at <= now - keep:
                    del self.jobs[job.job_id]
