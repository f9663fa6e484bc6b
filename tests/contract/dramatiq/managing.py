"""Flushing, joining and counting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq import Broker
from dramatiq.broker import Consumer
from dramatiq.errors import QueueJoinTimeout

from tests.contract.clock import Clock
from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import (
    HOUR,
    BrokerBackend,
    Recorder,
    assert_nothing_comes,
    drain,
    note,
    send,
    take,
    wait,
    working,
)
from tests.contract.helpers import WATCHDOG, wait_until

Consume = Callable[..., Consumer]


def bury(backend: BrokerBackend, broker: Broker, queue: str, consumer: Consumer) -> None:
    """Make a dead letter."""
    send(broker, queue, ["bad"])
    (bad,) = take(consumer)
    bad.fail()
    consumer.nack(bad)
    consumer.close()
    wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")


class FlushingContract:
    @pytest.mark.contract("DRM-10")
    def test_flush_drops_what_waits_in_one_queue(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        other = f"{queue}-other"
        for name in (queue, other):
            broker.declare_queue(name)
            send(broker, name, "abc")

        broker.flush(queue)

        assert_nothing_comes(consume(broker, queue))
        assert drain(consume(broker, other), 3) == ["a", "b", "c"]

    @pytest.mark.contract("DRM-10")
    def test_flush_all_drops_what_waits_in_every_queue(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume, clock: Clock
    ) -> None:
        ran: list[Any] = []
        for name in (queue, f"{queue}-other"):
            dramatiq.actor(ran.append, broker=broker, queue_name=name, actor_name=name)
            broker.enqueue(note(name, "flushed", actor=name))
            broker.enqueue(note(name, "flushed", actor=name), delay=HOUR)

        broker.flush_all()

        for name in broker.get_declared_queues() | broker.get_declared_delay_queues():
            assert_nothing_comes(consume(broker, name))
        clock.advance(HOUR / 1000 + 1)
        for name in (queue, f"{queue}-other"):
            assert_nothing_comes(consume(broker, name))
            assert backend.dead_letters(broker, name) == 0

    @needs(Capability.FLUSHES_DELAYED)
    @pytest.mark.contract("DRM-10")
    def test_flush_drops_delayed_messages_too(
        self, broker: Broker, queue: str, consume: Consume, clock: Clock
    ) -> None:
        broker.declare_queue(queue)
        broker.enqueue(note(queue, "x"), delay=HOUR)
        broker.flush(queue)
        assert_nothing_comes(consume(broker, f"{queue}.DQ"))
        clock.advance(HOUR / 1000 + 1)
        assert_nothing_comes(consume(broker, queue))

    @needs(Capability.FLUSHES_DEAD)
    @pytest.mark.contract("DRM-10")
    def test_flush_drops_dead_letters_too(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        bury(backend, broker, queue, consume(broker, queue))
        broker.flush(queue)
        assert backend.dead_letters(broker, queue) == 0

    def test_a_flushed_queue_goes_on(self, broker: Broker, queue: str, consume: Consume) -> None:
        broker.declare_queue(queue)
        broker.flush(queue)
        broker.flush_all()
        send(broker, queue, ["x"])
        assert drain(consume(broker, queue), 1) == ["x"]

    def test_a_message_in_hand_can_be_ended_after_a_flush(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, "abc")
        consumer = consume(broker, queue)
        (message,) = take(consumer)
        broker.flush(queue)
        consumer.ack(message)
        assert_nothing_comes(consumer)
        send(broker, queue, ["next"])
        assert drain(consumer, 1) == ["next"]


class JoiningContract:
    @pytest.mark.contract("DRM-10")
    def test_join_returns_when_nothing_is_left(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        ran: list[int] = []
        dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
        with working(broker, threads=2):
            send(broker, queue, range(20))
            broker.join(queue, timeout=int(WATCHDOG * 1000))
            recorder.wait_for("after_ack", 20)
        assert sorted(ran) == list(range(20))

    def test_join_of_an_empty_queue_returns(self, broker: Broker, queue: str) -> None:
        broker.declare_queue(queue)
        start = time.monotonic()
        broker.join(queue)
        assert time.monotonic() - start < WATCHDOG

    @pytest.mark.parametrize("delay", [None, HOUR])
    @pytest.mark.contract("DRM-10")
    def test_join_gives_up_after_its_timeout(
        self, broker: Broker, queue: str, delay: int | None
    ) -> None:
        broker.declare_queue(queue)
        broker.enqueue(note(queue), delay=delay)
        start = time.monotonic()
        with pytest.raises(QueueJoinTimeout):
            broker.join(queue, timeout=100)
        assert 0.09 < time.monotonic() - start < WATCHDOG

    @needs(Capability.JOINS_RUNNING)
    @pytest.mark.contract("DRM-10")
    def test_join_waits_for_what_is_at_work(
        self, broker: Broker, queue: str, recorder: Recorder
    ) -> None:
        started, go_on = threading.Event(), threading.Event()

        def work() -> None:
            started.set()
            wait(go_on, "the test goes on")

        actor = dramatiq.actor(work, broker=broker, queue_name=queue)
        with working(broker):
            actor.send()
            wait(started, "it has started")
            with pytest.raises(QueueJoinTimeout):
                broker.join(queue, timeout=100)
            go_on.set()
            broker.join(queue, timeout=int(WATCHDOG * 1000))
            assert len(recorder.all("after_process_message")) == 1

    @needs(Capability.JOINS_RUNNING)
    def test_join_waits_for_retries(self, broker: Broker, queue: str) -> None:
        attempts: list[int] = []

        @dramatiq.actor(broker=broker, queue_name=queue, min_backoff=50, max_backoff=100)
        def work() -> None:
            attempts.append(1)
            if len(attempts) < 3:
                raise RuntimeError("on purpose")

        with working(broker):
            work.send()
            broker.join(queue, timeout=int(WATCHDOG * 1000))
        assert len(attempts) == 3

    def test_a_dead_letter_is_not_waited_for(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        bury(backend, broker, queue, consume(broker, queue))
        broker.join(queue, timeout=int(WATCHDOG * 1000))
        assert backend.dead_letters(broker, queue) == 1

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRM-05")
    def test_a_dead_letter_outlives_its_broker(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        bury(backend, broker, queue, consume(broker, queue))
        broker.close()
        again = backend.open()
        again.declare_queue(queue)
        assert backend.dead_letters(again, queue) == 1
        assert_nothing_comes(consume(again, queue))

    @needs(Capability.COUNTS)
    @pytest.mark.contract("DRM-10")
    def test_messages_are_counted_by_kind(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        assert broker.get_queue_message_counts(queue) == (0, 0, 0)
        bury(backend, broker, queue, consume(broker, queue))
        send(broker, queue, "abc")
        for _ in range(2):
            broker.enqueue(note(queue), delay=HOUR)
        assert broker.get_queue_message_counts(queue) == (3, 2, 1)
