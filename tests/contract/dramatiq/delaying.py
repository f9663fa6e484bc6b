"""Delayed messages: not before their time, in the order of their times, and not lost meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import dramatiq
import pytest
from dramatiq import Broker
from dramatiq.broker import Consumer

from tests.contract.clock import Clock
from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import (
    HOUR,
    BrokerBackend,
    Recorder,
    assert_nothing_comes,
    drain,
    note,
    take,
    values_of,
    working,
)

Consume = Callable[..., Consumer]

DAYS = 24 * HOUR


def declare(broker: Broker, queue: str, ran: list[Any]) -> None:
    dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")


class DelayingContract:
    capabilities: ClassVar[frozenset[Capability]]

    def wait_until_held(self, recorder: Recorder, count: int) -> None:
        """Until the worker has taken the delayed messages into its memory, if they wait there.

        StubBroker's worker takes no more than two at a time, for each of its threads.
        """
        if Capability.HOLDS_DELAYED in self.capabilities:
            recorder.wait_for("before_delay_message", count)

    @pytest.mark.contract("DRM-08")
    def test_a_delayed_message_waits_for_its_time(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        with working(broker):
            broker.enqueue(note(queue, "late"), delay=HOUR)
            self.wait_until_held(recorder, 1)
            broker.enqueue(note(queue, "at once"))
            recorder.wait_for("after_process_message")
            assert ran == ["at once"]

            clock.advance(HOUR / 1000 + 1)

            recorder.wait_for("after_process_message", 2)
        assert ran == ["at once", "late"]

    @pytest.mark.contract("DRM-08")
    def test_a_delayed_message_runs_under_its_plain_name(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        declare(broker, queue, [])
        sent = broker.enqueue(note(queue, 1, own="option"), delay=HOUR)
        with working(broker):
            self.wait_until_held(recorder, 1)
            clock.advance(HOUR / 1000 + 1)
            ((_, ran, _),) = recorder.wait_for("before_process_message")
            recorder.wait_for("after_ack")
        assert (ran.queue_name, ran.message_id) == (queue, sent.message_id)
        assert ran.options["own"] == "option"
        assert "eta" not in ran.options

    @pytest.mark.contract("DRM-08")
    def test_middleware_is_told_once_that_a_message_is_delayed(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        declare(broker, queue, [])
        sent = broker.enqueue(note(queue, 1), delay=HOUR)
        with working(broker):
            self.wait_until_held(recorder, 1)
            clock.advance(HOUR / 1000 + 1)
            recorder.wait_for("after_process_message")
        signals = [name for name in recorder.of(sent) if "delay" in name or "process" in name]
        assert signals == [
            "before_delay_message",
            "before_process_message",
            "after_process_message",
        ]

    @pytest.mark.contract("DRM-08")
    def test_delayed_messages_run_in_the_order_of_their_times(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        for hours in (2, 1):
            broker.enqueue(note(queue, hours), delay=hours * HOUR)
        with working(broker):
            self.wait_until_held(recorder, 2)
            clock.advance(3 * HOUR / 1000)
            recorder.wait_for("after_process_message", 2)
        assert ran == [1, 2]

    def test_only_what_is_due_runs(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        for hours in (3, 1):
            broker.enqueue(note(queue, hours), delay=hours * HOUR)
        with working(broker):
            self.wait_until_held(recorder, 2)
            clock.advance(2 * HOUR / 1000)
            recorder.wait_for("after_process_message")
            broker.enqueue(note(queue, "at once"))
            recorder.wait_for("after_process_message", 2)
            assert ran == [1, "at once"]
            clock.advance(2 * HOUR / 1000)
            recorder.wait_for("after_process_message", 3)
        assert ran == [1, "at once", 3]

    @pytest.mark.parametrize("delay", [0, 1])
    def test_no_delay_worth_the_name(
        self, broker: Broker, recorder: Recorder, queue: str, delay: int
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        with working(broker):
            broker.enqueue(note(queue, "x"), delay=delay)
            recorder.wait_for("after_process_message")
        assert ran == ["x"]

    @pytest.mark.contract("DRM-08")
    def test_a_delay_may_be_long(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        broker.enqueue(note(queue, "next year"), delay=400 * DAYS)
        with working(broker):
            self.wait_until_held(recorder, 1)
            clock.advance(399 * DAYS / 1000)
            broker.enqueue(note(queue, "at once"))
            recorder.wait_for("after_process_message")
            clock.advance(2 * DAYS / 1000)
            recorder.wait_for("after_process_message", 2)
        assert ran == ["at once", "next year"]

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRM-08")
    def test_delayed_messages_outlive_their_broker(
        self, backend: BrokerBackend, broker: Broker, queue: str, clock: Clock, record: Any
    ) -> None:
        broker.declare_queue(queue)
        broker.enqueue(note(queue, "x"), delay=HOUR)
        broker.close()
        again = backend.open()
        recorder, ran = record(again), []
        declare(again, queue, ran)
        with working(again):
            self.wait_until_held(recorder, 1)
            clock.advance(HOUR / 1000 + 1)
            recorder.wait_for("after_process_message")
        assert ran == ["x"]

    @needs(Capability.REQUEUES)
    @pytest.mark.contract("DRM-08")
    def test_delayed_messages_outlive_their_worker(
        self, broker: Broker, recorder: Recorder, queue: str, clock: Clock
    ) -> None:
        ran: list[Any] = []
        declare(broker, queue, ran)
        for hours in (1, 2):
            broker.enqueue(note(queue, hours), delay=hours * HOUR)
        with working(broker):
            self.wait_until_held(recorder, 2)
        assert ran == []
        with working(broker):
            self.wait_until_held(recorder, 4)
            clock.advance(3 * HOUR / 1000)
            recorder.wait_for("after_process_message", 2)
        assert ran == [1, 2]

    @needs(Capability.HOLDS_DELAYED)
    def test_the_delay_queue_hands_out_what_is_not_due(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        sent = broker.enqueue(note(queue, "x"), delay=HOUR)
        consumer = consume(broker, f"{queue}.DQ")
        (message,) = take(consumer)
        assert message.options["eta"] == sent.options["eta"]
        consumer.ack(message)
        assert_nothing_comes(consumer)

    @needs(Capability.STORES_DELAYED)
    @pytest.mark.contract("DRM-08")
    def test_what_is_stored_comes_when_it_is_due_and_in_order(
        self, broker: Broker, recorder: Recorder, queue: str, consume: Consume, clock: Clock
    ) -> None:
        broker.declare_queue(queue)
        for hours in (3, 1, 2):
            broker.enqueue(note(queue, hours), delay=hours * HOUR)
        plain, delayed = consume(broker, queue, prefetch=3), consume(broker, f"{queue}.DQ")
        assert_nothing_comes(plain)

        clock.advance(2.5 * HOUR / 1000)

        due = take(plain, 2)
        assert values_of(due) == [1, 2]
        assert [(message.queue_name, "eta" in message.options) for message in due] == [
            (queue, False),
            (queue, False),
        ]
        assert_nothing_comes(plain)
        assert_nothing_comes(delayed)
        told = [signal.subject.message_id for signal in recorder.all("before_delay_message")]
        assert told == [message.message_id for message in due]
        for message in due:
            plain.ack(message)

    @needs(Capability.STORES_DELAYED)
    def test_a_requeued_message_that_was_delayed_does_not_wait_again(
        self, broker: Broker, queue: str, consume: Consume, clock: Clock
    ) -> None:
        broker.declare_queue(queue)
        broker.enqueue(note(queue, "x"), delay=HOUR)
        clock.advance(HOUR / 1000 + 1)
        consumer = consume(broker, queue)
        consumer.requeue(take(consumer))
        consumer.close()
        assert drain(consume(broker, queue), 1) == ["x"]
