"""In which order a consumer gets messages, how many at a time, and what becomes of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from dramatiq import Broker
from dramatiq.broker import Consumer

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import (
    BrokerBackend,
    assert_nothing_comes,
    drain,
    note,
    send,
    take,
    values_of,
)
from tests.contract.helpers import WATCHDOG, wait_until

Consume = Callable[..., Consumer]


class ConsumingContract:
    @pytest.mark.contract("DRM-04")
    def test_messages_come_in_the_order_of_enqueue(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, range(50))
        assert drain(consume(broker, queue, prefetch=7), 50) == list(range(50))

    def test_queues_are_independent(self, broker: Broker, queue: str, consume: Consume) -> None:
        other = f"{queue}-other"
        for name in (queue, other):
            broker.declare_queue(name)
            send(broker, name, [name])
        assert drain(consume(broker, other), 1) == [other]
        assert drain(consume(broker, queue), 1) == [queue]

    @pytest.mark.parametrize("prefetch", [1, 3])
    @pytest.mark.contract("DRM-04")
    def test_no_more_than_the_prefetch_are_in_hand(
        self, broker: Broker, queue: str, consume: Consume, prefetch: int
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, range(prefetch + 2))
        consumer = consume(broker, queue, prefetch=prefetch)

        first, *_ = take(consumer, prefetch)
        assert_nothing_comes(consumer)
        consumer.ack(first)
        assert values_of(take(consumer)) == [prefetch]
        assert_nothing_comes(consumer)

    def test_a_nack_makes_room_as_an_ack_does(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, ["bad", "next"])
        consumer = consume(broker, queue)
        (bad,) = take(consumer)
        bad.fail()
        consumer.nack(bad)
        assert drain(consumer, 1) == ["next"]

    @pytest.mark.parametrize("timeout", [1, 50])
    def test_an_empty_queue_gives_none(
        self, broker: Broker, queue: str, consume: Consume, timeout: int
    ) -> None:
        broker.declare_queue(queue)
        consumer = consume(broker, queue, timeout=timeout)
        start = time.monotonic()
        assert next(consumer) is None
        assert time.monotonic() - start < WATCHDOG

    @needs(Capability.WAITS)
    def test_none_comes_when_the_timeout_has_passed(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        consumer = consume(broker, queue, timeout=100)
        start = time.monotonic()
        assert next(consumer) is None
        assert 0.095 < time.monotonic() - start < WATCHDOG

    @needs(Capability.WAITS)
    @pytest.mark.contract("DRM-04")
    def test_a_message_ends_the_wait(self, broker: Broker, queue: str, consume: Consume) -> None:
        broker.declare_queue(queue)
        consumer = consume(broker, queue, timeout=int(WATCHDOG * 1000))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(next, consumer)
            send(broker, queue, ["x"])
            message = waiting.result(WATCHDOG / 2)
        assert values_of([message]) == ["x"]
        consumer.ack(message)

    def test_a_consumer_is_its_own_iterator(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        consumer = consume(broker, queue)
        assert iter(consumer) is consumer

    @pytest.mark.contract("DRM-05")
    def test_an_acked_message_is_gone(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, ["x"])
        consumer = consume(broker, queue)
        consumer.ack(*take(consumer))
        consumer.close()
        assert_nothing_comes(consume(broker, queue))
        assert backend.dead_letters(broker, queue) == 0

    @pytest.mark.contract("DRM-05")
    def test_a_nacked_message_is_a_dead_letter(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, ["bad", "good"])
        consumer = consume(broker, queue, prefetch=2)
        bad, good = take(consumer, 2)
        bad.fail()
        consumer.nack(bad)
        consumer.ack(good)
        consumer.close()
        assert_nothing_comes(consume(broker, queue))
        wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")

    @pytest.mark.contract("DRM-04")
    def test_a_message_in_hand_is_not_given_to_another(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, ["x"])
        one, two = consume(broker, queue), consume(broker, queue)
        (message,) = take(one)
        assert_nothing_comes(two)
        one.ack(message)
        assert_nothing_comes(two)

    @pytest.mark.contract("DRM-04")
    def test_several_consumers_share_a_queue(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, range(100))
        seen: list[int] = []
        seen_all = threading.Event()

        def work(consumer: Consumer) -> None:
            while not seen_all.is_set():
                message = next(consumer)
                if message is not None:
                    consumer.ack(message)
                    seen.append(message.args[0])
                    if len(seen) >= 100:
                        seen_all.set()

        consumers = [consume(broker, queue, prefetch=5) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(work, consumer) for consumer in consumers]
            came = seen_all.wait(WATCHDOG)
            seen_all.set()
        assert [each.exception() for each in done] == [None] * 3
        assert came
        assert sorted(seen) == list(range(100))

    @needs(Capability.REQUEUES)
    def test_requeued_messages_come_again(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, "abc")
        first = consume(broker, queue, prefetch=3)
        first.requeue(take(first, 3))
        first.close()
        assert sorted(drain(consume(broker, queue), 3)) == ["a", "b", "c"]

    @needs(Capability.REQUEUES_IN_PLACE)
    @pytest.mark.contract("DRM-06")
    def test_requeued_messages_go_back_to_their_places(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, "abcd")
        first = consume(broker, queue, prefetch=3)
        started, *unstarted = take(first, 3)
        first.ack(started)
        first.requeue(reversed(unstarted))
        first.close()
        assert drain(consume(broker, queue), 3) == ["b", "c", "d"]

    @needs(Capability.REQUEUES)
    @pytest.mark.contract("DRM-06")
    def test_a_requeue_costs_a_message_nothing(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        sent = broker.enqueue(note(queue, "x"))
        for _ in range(30):
            consumer = consume(broker, queue)
            (message,) = take(consumer)
            assert message.options == sent.options
            consumer.requeue([message])
            consumer.close()
        assert drain(consume(broker, queue), 1) == ["x"]
        assert backend.dead_letters(broker, queue) == 0

    def test_nothing_may_be_requeued(self, broker: Broker, queue: str, consume: Consume) -> None:
        broker.declare_queue(queue)
        consumer = consume(broker, queue)
        consumer.requeue([])
        consumer.requeue(iter(()))
        assert_nothing_comes(consumer)

    @needs(Capability.CLOSING_GIVES_BACK)
    @pytest.mark.contract("DRM-06")
    def test_a_closed_consumer_gives_back_what_it_has_not_handed_out(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, "abc")
        first = consume(broker, queue, prefetch=3)
        first.ack(*take(first))
        first.close()
        assert drain(consume(broker, queue), 2) == ["b", "c"]

    @needs(Capability.ENDS_ANYWHERE)
    def test_messages_of_a_closed_consumer_can_be_ended_by_another(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        """So do workers whose consumer was closed by an error while they were at work."""
        broker.declare_queue(queue)
        send(broker, queue, ["good", "bad", "next"])
        first = consume(broker, queue, prefetch=2)
        good, bad = take(first, 2)
        first.close()
        second = consume(broker, queue, prefetch=2)
        second.ack(good)
        bad.fail()
        second.nack(bad)
        assert drain(second, 1) == ["next"]
        assert backend.dead_letters(broker, queue) == 1

    @needs(Capability.ENDS_ANYWHERE, Capability.REQUEUES)
    @pytest.mark.contract("DRM-06")
    def test_messages_of_a_closed_consumer_can_be_requeued_by_another(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, "ab")
        first = consume(broker, queue, prefetch=2)
        messages = take(first, 2)
        first.close()
        second = consume(broker, queue)
        second.requeue(messages)
        assert sorted(drain(second, 2)) == ["a", "b"]

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRM-01")
    def test_messages_outlive_their_broker(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        send(broker, queue, range(10))
        broker.close()
        again = backend.open()
        again.declare_queue(queue)
        assert drain(consume(again, queue), 10) == list(range(10))

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRM-01")
    def test_brokers_share_their_messages(
        self, backend: BrokerBackend, broker: Broker, queue: str, consume: Consume
    ) -> None:
        other = backend.open()
        for each in (broker, other):
            each.declare_queue(queue)
        consumer = consume(other, queue)
        assert_nothing_comes(consumer)
        send(broker, queue, ["x"])
        assert drain(consumer, 1) == ["x"]
