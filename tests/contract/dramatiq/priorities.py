"""Which message comes first."""

from __future__ import annotations

from collections.abc import Callable

import dramatiq
import pytest
from dramatiq import Broker
from dramatiq.broker import Consumer

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import Held, Recorder, drain, note, wait, working

Consume = Callable[..., Consumer]


def declare(broker: Broker, queue: str, **priorities: int) -> None:
    for name, priority in priorities.items():
        dramatiq.actor(
            lambda *_: None, broker=broker, queue_name=queue, actor_name=name, priority=priority
        )


class PrioritiesContract:
    @needs(Capability.ACTOR_PRIORITY)
    @pytest.mark.contract("DRM-09")
    def test_a_smaller_actor_priority_comes_first(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        declare(broker, queue, high=-5, low=100)
        names = ["low", "default", "high", "low", "high", "default"]
        for number, name in enumerate(names):
            broker.enqueue(note(queue, number, actor=name))
        assert drain(consume(broker, queue), 6) == [2, 4, 1, 5, 0, 3]

    @needs(Capability.ACTOR_PRIORITY)
    @pytest.mark.contract("DRM-09")
    def test_after_many_low_ones_a_high_one_runs_next(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        held = Held()

        for name, priority in (("high", 0), ("low", 1)):
            dramatiq.actor(
                held.work, broker=broker, queue_name=queue, actor_name=name, priority=priority
            )
        with working(broker):
            broker.enqueue(note(queue, "first", actor="low"))
            wait(held.started, "the first has started")
            for number in range(100):
                broker.enqueue(note(queue, number, actor="low"))
            broker.enqueue(note(queue, "urgent", actor="high"))
            held.go_on.set()
            recorder.wait_for("after_process_message", 102)
        assert held.ran == ["first", "urgent", *range(100)]

    @needs(Capability.BROKER_PRIORITY)
    @pytest.mark.contract("DRM-09")
    def test_a_greater_broker_priority_comes_first(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        for number, priority in enumerate([None, 3, 7, 0, 7, 3]):
            options = {} if priority is None else {"broker_priority": priority}
            broker.enqueue(note(queue, number, **options))
        assert drain(consume(broker, queue), 6) == [2, 4, 1, 5, 0, 3]

    @needs(Capability.BROKER_PRIORITY)
    @pytest.mark.contract("DRM-09")
    def test_the_broker_priority_goes_before_the_actors(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        declare(broker, queue, high=-(10**6), low=10**6)
        broker.enqueue(note(queue, 1, actor="high"))
        broker.enqueue(note(queue, 2, actor="low", broker_priority=1))
        assert drain(consume(broker, queue), 2) == [2, 1]
