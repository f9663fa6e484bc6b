"""Random honest work on a queue, every step of it written to the journal."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

from equeue_core import Queue, QueueEmpty, Record

from ._ledger import Journal

#: So many retries that no job fails because its workers are killed or interrupted.
MANY = 10**6


class Worker:
    """One thread's share of the work. `name` makes its payloads unique."""

    def __init__(self, queue: Queue[Any], journal: Journal, name: str) -> None:
        self.queue = queue
        self.journal = journal
        self.name = name
        self.random = random.Random(name)
        self._numbers = itertools.count()

    def token(self) -> str:
        return f"{self.name}-{next(self._numbers)}"

    def put(self) -> None:
        token = self.token()
        self.journal("b", token)
        delay = 0.005 if self.random.random() < 0.1 else None
        job_id = self.queue.put(token, priority=self.random.randrange(3), delay=delay)
        self.journal("p", token, job_id)

    def put_many(self) -> None:
        tokens = [self.token() for _ in range(self.random.randrange(1, 6))]
        for token in tokens:
            self.journal("b", token)
        for token, job_id in zip(tokens, self.queue.put_many(tokens), strict=True):
            self.journal("p", token, job_id)

    def take(self, timeout: float = 0.0) -> bool:
        """Claim a job and complete it in one of the ways. False if there was none."""
        try:
            record = self.queue.get(timeout)
        except QueueEmpty:
            return False
        self.journal("g", record.job_id, record.attempt)
        self.complete(record)
        return True

    def take_many(self) -> None:
        try:
            records = self.queue.get_many(self.random.randrange(1, 5), 0)
        except QueueEmpty:
            return
        for record in records:
            self.journal("g", record.job_id, record.attempt)
        self.queue.ack_many(records)
        for record in records:
            self.journal("k", record.job_id)

    def process(self) -> None:
        """One job in the way of most programs. Its end is the ack, so only after it is that known."""
        try:
            with self.queue.processing(0) as record:
                self.journal("g", record.job_id, record.attempt)
        except QueueEmpty:
            return
        self.journal("k", record.job_id)

    def complete(self, record: Record[Any]) -> None:
        roll = self.random.random()
        if roll < 0.7:
            record.ack()
            self.journal("k", record.job_id)
        elif roll < 0.8:
            self.chain(record)
        elif roll < 0.87:
            record.nack("once more")
        elif roll < 0.94:
            record.release()
        # else: dropped, which gives it back

    def chain(self, record: Record[Any]) -> None:
        """Ack this and put the next, in one transaction."""
        token = self.token()
        self.journal("t", token, record.job_id)
        with self.queue.store.transaction() as tx:
            tx.ack(record)
            pending = tx.put(self.queue, token)
        self.journal("T", token, record.job_id, pending.job_id)

    def look(self) -> None:
        """Read only."""
        self.queue.stats()
        self.queue.jobs("pending", limit=5)

    def step(self) -> None:
        """One operation of any kind, as often in as out."""
        roll = self.random.random()
        if roll < 0.35:
            self.put()
        elif roll < 0.4:
            self.put_many()
        elif roll < 0.8:
            self.take()
        elif roll < 0.85:
            self.process()
        elif roll < 0.9:
            self.take(0.001)
        elif roll < 0.95:
            self.take_many()
        else:
            self.look()

    def produce(self, going: Callable[[], bool], limit: int = 500) -> None:
        while going():
            if self.queue.qsize() > limit:
                time.sleep(0.002)  # consumers are behind
            elif self.random.random() < 0.8:
                self.put()
            else:
                self.put_many()

    def consume(self, going: Callable[[], bool]) -> None:
        while going():
            if self.random.random() < 0.9:
                self.take(0.5)
            else:
                self.take_many()

    def drain(self) -> None:
        """Take and ack what is left, delayed jobs and those of dead owners too."""
        while self.unfinished():
            try:
                record = self.queue.get(0.2)
            except QueueEmpty:
                continue
            self.journal("g", record.job_id, record.attempt)
            record.ack()
            self.journal("k", record.job_id)

    def unfinished(self) -> int:
        stats = self.queue.stats()
        return stats["pending"] + stats["scheduled"] + stats["running"]
