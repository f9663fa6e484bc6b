"""LMDBBroker with those ways of RedisBroker that its tests use to look inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import dramatiq
from dramatiq.brokers.redis import MAINTENANCE_SCALE
from dramatiq.common import dq_name, q_name, xq_name

from equeue_core import State
from equeue_dramatiq import LMDBBroker

from .backends import STORES
from .watched import Watched

_ID = "redis_message_id"


class _Consumer(Watched):
    """Counts what is in hand, and acks and nacks through the broker, where tests put errors in between."""

    def __init__(self, inner: dramatiq.Consumer, broker: Broker, queue_name: str) -> None:
        super().__init__(inner)
        self.broker = broker
        self.queue_name = queue_name
        self._in_hand: set[str] = set()

    @property
    def outstanding_message_count(self) -> int:
        return len(self._in_hand)

    def __next__(self) -> dramatiq.MessageProxy | None:
        message = super().__next__()
        if message is not None:
            self._in_hand.add(message.message_id)
        return message

    def ack(self, message: dramatiq.MessageProxy) -> None:
        self._end(self.broker.do_ack, message)

    def nack(self, message: dramatiq.MessageProxy) -> None:
        self._end(self.broker.do_nack, message)

    def _end(self, do: Any, message: dramatiq.MessageProxy) -> None:
        self.broker.ending[message.options[_ID]] = (self.inner, message)
        try:
            do(self.queue_name, message.options[_ID])
        finally:
            self._in_hand.discard(message.message_id)


class _Client:
    """Reads the keys that RedisBroker would have."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        name = key.partition(":")[2]
        state = State.SCHEDULED if name == dq_name(name) else State.PENDING
        return self._ids(name, state)[start : stop + 1]

    def zrangebyscore(self, key: str, low: object, high: object) -> list[bytes]:
        name = key.partition(":")[2]
        assert name == xq_name(name)
        return self._ids(name, State.FAILED)

    def _ids(self, name: str, state: State) -> list[bytes]:
        return [
            dramatiq.Message.decode(job.payload).options[_ID].encode()
            for job in self._broker.queue(q_name(name)).jobs(state)
        ]


class Broker(LMDBBroker):
    """LMDBBroker, to be looked at as RedisBroker is."""

    def __init__(self, path: Path = STORES / "redis", **options: Any) -> None:
        super().__init__(path, **options)
        self.client = _Client(self)
        self.ending: dict[str, tuple[dramatiq.Consumer, dramatiq.MessageProxy]] = {}
        self.maintenance_chance = 0

    def enqueue(self, message: Any, *, delay: int | None = None) -> Any:
        return super().enqueue(message.copy(options={_ID: str(uuid4())}), delay=delay)

    def consume(self, queue_name: str, *args: Any, **options: Any) -> dramatiq.Consumer:
        return _Consumer(super().consume(queue_name, *args, **options), self, queue_name)

    def do_ack(self, queue_name: str, redis_id: str) -> None:
        consumer, message = self.ending[redis_id]
        consumer.ack(message)

    def do_nack(self, queue_name: str, redis_id: str) -> None:
        consumer, message = self.ending[redis_id]
        consumer.nack(message)

    def do_qsize(self, queue_name: str) -> int:
        """RedisBroker counts a message in hand twice, and one that waits for its time as well.

        It also cleans up by chance. Tests make the chance a certainty, with a TTL set meanwhile.
        """
        if self.maintenance_chance == MAINTENANCE_SCALE:
            cleaner = LMDBBroker(store=self.store, dead_message_ttl=self.dead_message_ttl)
            cleaner.queue(queue_name).vacuum()
        counts = self.stats(queue_name)
        return counts["pending"] + 2 * (counts["scheduled"] + counts["running"])
