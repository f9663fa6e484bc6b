"""What happened, as the processes wrote it down, against what the store says.

Each process appends a line before and after what it does, so a line is there for everything that
returned, whatever killed the process afterwards.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equeue_core import Job, Queue, State, Store


class Journal:
    """One file to which many processes append. A line: kind, then words.

    b token           a put begins            p token id        it returned
    g id attempt      a get returned          k id              an ack returned
    t token id        a transaction begins that acks the job and puts the token
    T token id new    it returned
    """

    def __init__(self, path: str | Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, *words: object) -> None:
        # SIGKILL can cut a write at a page boundary: only what ends in ";" counts.
        os.write(self._fd, f"\n{' '.join(map(str, words))};".encode())

    def close(self) -> None:
        os.close(self._fd)


@dataclass
class Story:
    """A journal, read."""

    begun: set[str] = field(default_factory=set)
    put: dict[str, int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    acked: set[int] = field(default_factory=set)
    chained: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Story:
        story = cls()
        for line in path.read_text().splitlines():
            if line.endswith(";"):
                kind, *words = line[:-1].split()
                story._add(kind, words)
        return story

    def _add(self, kind: str, words: list[str]) -> None:
        if kind == "b":
            self.begun.add(words[0])
        elif kind == "p":
            self.put[words[0]] = int(words[1])
        elif kind == "g":
            self._deliver(int(words[0]), int(words[1]))
        elif kind == "k":
            self.acked.add(int(words[0]))
        elif kind == "t":
            self.begun.add(words[0])
            self.chained[words[0]] = int(words[1])
        elif kind == "T":
            self.acked.add(int(words[1]))
            self.put[words[0]] = int(words[2])

    def _deliver(self, job_id: int, attempt: int) -> None:
        if job_id in self.acked:
            self.faults.append(f"job {job_id} was delivered after its ack had returned")
        if attempt <= self.attempts.get(job_id, 0):
            self.faults.append(f"job {job_id}: attempt {attempt} was delivered twice")
        self.attempts[job_id] = attempt

    def check(self, queue: Queue[Any], others: frozenset[str] = frozenset()) -> None:
        """The queue agrees with every line. Payloads are the tokens; nothing was vacuumed.

        `others` are payloads of which the journal says nothing.
        """
        assert self.faults == []
        jobs = {job.job_id: job for job in every_job(queue) if job.payload not in others}
        tokens = Counter(str(job.payload) for job in jobs.values())
        assert [token for token, times in tokens.items() if times > 1] == []
        wrong = {t: i for t, i in self.put.items() if i not in jobs or jobs[i].payload != t}
        assert wrong == {}, "a put that returned is not there"
        assert tokens.keys() - self.begun == set(), "jobs that nobody put"
        not_done = {i for i in self.acked if jobs[i].state is not State.DONE}
        assert not_done == set(), "an ack that returned did not stay"
        done = {i for i, job in jobs.items() if job.state is State.DONE}
        assert done - self.attempts.keys() == set(), "jobs that are done but were never delivered"
        torn = {t for t, i in self.chained.items() if t in tokens and i not in done}
        assert torn == set(), "half of a transaction was applied"


def pages(queue: Queue[Any], state: State, limit: int = 1000) -> Iterator[Job]:
    """Every job in one state, page by page."""
    page = queue.jobs(state, limit=limit)
    while page:
        yield from page
        page = queue.jobs(state, limit=limit, after=page[-1])


def every_job(queue: Queue[Any]) -> Iterator[Job]:
    for state in State:
        yield from pages(queue, state)


def assert_sound(store: Store) -> None:
    """The file is undamaged and every counter equals a recount."""
    report = store.check()
    assert report.ok, report.problems
    for name in store.queues():
        queue = store.queue(name, do_recover=False, do_vacuum=False)
        stats = queue.stats()
        recount = {state.value: sum(1 for _ in pages(queue, state)) for state in State}
        assert {state: stats[state] for state in recount} == recount
        assert sum(recount.values()) <= stats["total"]
