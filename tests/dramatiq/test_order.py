"""The order of messages that a worker has in hand."""

from __future__ import annotations

import random
from pathlib import Path

from dramatiq import Message

from equeue_dramatiq import LMDBBroker


def test_messages_compare_in_the_order_of_their_queue(store_path: Path) -> None:
    broker = LMDBBroker(store_path)
    for number, urgency in enumerate([0, 0, 5, 0, 5]):
        broker.enqueue(
            Message(
                queue_name="default",
                actor_name="work",
                args=(number,),
                kwargs={},
                options={"broker_priority": urgency},
            )
        )
    consumer = broker.consume("default", prefetch=5)
    messages = [next(consumer) for _ in range(5)]
    assert [message.args for message in messages] == [(2,), (4,), (0,), (1,), (3,)]
    for _ in range(5):
        assert sorted(random.sample(messages, 5)) == messages
    consumer.close()
    broker.close()
