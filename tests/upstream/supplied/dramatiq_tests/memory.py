"""LMDBBroker with those ways of StubBroker that its tests use to look inside."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import dramatiq

from equeue_core import Queue, State
from equeue_dramatiq import LMDBBroker
from equeue_dramatiq._message import LMDBMessage

from .backends import STORES
from .watched import Watched


class FailedMessage(LMDBMessage):
    """Keeps its exception after its end, as StubBroker's messages do: `join` raises it."""

    def clear_exception(self) -> None:
        """Nothing; one test puts the real method back."""


class _Consumer(Watched):
    def __init__(self, inner: dramatiq.Consumer, rejected: list[FailedMessage]) -> None:
        super().__init__(inner)
        self._rejected = rejected

    def __next__(self) -> dramatiq.MessageProxy | None:
        message = super().__next__()
        if message is not None:
            message.__class__ = FailedMessage
        return message

    def nack(self, message: FailedMessage) -> None:
        self._rejected.append(message)
        super().nack(message)


class _QueueView:
    """A queue, as `queue.Queue` has its methods."""

    def __init__(self, queue: Queue[bytes]) -> None:
        self._queue = queue

    def put(self, data: bytes) -> None:
        self._queue.put(data)

    def get(self, timeout: float) -> bytes:
        record = self._queue.get(timeout)
        record.ack()
        return record.payload

    def qsize(self) -> int:
        return self._queue.stats()["pending"]

    @property
    def unfinished_tasks(self) -> int:
        counts = self._queue.stats()
        return counts["pending"] + counts["scheduled"] + counts["running"]

    def append(self, dead_letter: str) -> None:
        self._queue.put(dead_letter.encode())
        self._queue.get().fail("put there")


class _Queues(set[str]):
    def __init__(self, broker: LMDBBroker) -> None:
        super().__init__()
        self._broker = broker

    def __getitem__(self, name: str) -> _QueueView:
        return _QueueView(self._broker.queue(name))


class Memory(LMDBBroker):
    """LMDBBroker, to be looked at as StubBroker is, and as fast as it can be: tests count on that."""

    def __init__(self, path: Path = STORES / "memory", **options: Any) -> None:
        super().__init__(path, sync="off", **options)
        self.queues = _Queues(self)
        self.rejected: defaultdict[str, list[FailedMessage]] = defaultdict(list)

    @property
    def dead_letters_by_queue(self) -> _Queues:
        return self.queues

    @property
    def dead_letters(self) -> list[Any]:
        return [
            job.payload if job.payload == b"dead letter" else dramatiq.Message.decode(job.payload)
            for name in self.queues
            for job in self.queue(name).jobs(State.FAILED)
        ]

    def consume(self, queue_name: str, *args: Any, **options: Any) -> dramatiq.Consumer:
        return _Consumer(super().consume(queue_name, *args, **options), self.rejected[queue_name])

    def flush_all(self) -> None:
        super().flush_all()
        for messages in self.rejected.values():
            messages.clear()

    def join(
        self, queue_name: str, *, timeout: int | None = None, fail_fast: bool | None = None
    ) -> None:
        super().join(queue_name, timeout=timeout)
        if fail_fast is None or fail_fast:
            for message in self.rejected[queue_name]:
                raise message._exception or AssertionError("a message failed without an exception")
