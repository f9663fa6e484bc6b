"""What happens to a message on its way into a queue, and that it comes out whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import dramatiq
import pytest
from dramatiq import Broker, Message, Middleware, PickleEncoder
from dramatiq.broker import Consumer
from dramatiq.middleware import MiddlewareError

from tests.contract.dramatiq.helpers import (
    HOUR,
    Recorder,
    assert_nothing_comes,
    drain,
    note,
    take,
)

Consume = Callable[..., Consumer]


class EnqueueingContract:
    @pytest.fixture
    def pickling(self) -> Iterator[None]:
        """Messages as pickles, which know more types than JSON."""
        encoder = dramatiq.get_encoder()
        dramatiq.set_encoder(PickleEncoder())
        yield
        dramatiq.set_encoder(encoder)

    @pytest.mark.contract("DRM-01")
    def test_a_message_comes_out_as_it_was_sent(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        sent = Message(
            queue_name=queue,
            actor_name="work",
            args=(1, "two \N{SNOWMAN}", None, [3.5, {"four": True}]),
            kwargs={"key": "value"},
            options={"max_retries": 3, "own": {"nested": [1]}},
        )

        broker.enqueue(sent)

        (got,) = take(consume(broker, queue))
        assert (got.queue_name, got.actor_name) == (queue, "work")
        assert (got.args, got.kwargs) == (sent.args, sent.kwargs)
        assert got.options.items() >= sent.options.items()
        assert (got.message_id, got.message_timestamp) == (sent.message_id, sent.message_timestamp)
        assert got.failed is False

    @pytest.mark.contract("DRM-03")
    def test_enqueue_tells_middleware_and_returns_the_message(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        broker.declare_queue(queue)

        returned = broker.enqueue(note(queue, 1))

        assert [
            (name, message, rest)
            for name, message, rest in recorder.all("before_enqueue", "after_enqueue")
        ] == [("before_enqueue", returned, (None,)), ("after_enqueue", returned, (None,))]
        assert returned.queue_name == queue
        assert "eta" not in returned.options

    @pytest.mark.contract("DRM-03")
    def test_a_delayed_message_is_named_after_the_delay_queue_and_knows_its_time(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        broker.declare_queue(queue)
        sent = note(queue, 1)
        before = int(time.time() * 1000)

        returned = broker.enqueue(sent, delay=HOUR)

        after = int(time.time() * 1000)
        assert returned.queue_name == f"{queue}.DQ"
        assert before + HOUR <= returned.options["eta"] <= after + HOUR
        assert returned.message_id == sent.message_id
        assert (sent.queue_name, "eta" in sent.options) == (queue, False)
        assert [signal[1:] for signal in recorder.all("before_enqueue", "after_enqueue")] == [
            (returned, (HOUR,)),
            (returned, (HOUR,)),
        ]

    def test_middleware_can_keep_a_message_out(
        self, broker: Broker, recorder: Recorder, queue: str, consume: Consume
    ) -> None:
        class Full(MiddlewareError):
            pass

        class Doorkeeper(Middleware):
            def before_enqueue(self, broker: Broker, message: object, delay: object) -> None:
                raise Full

        broker.declare_queue(queue)
        broker.add_middleware(Doorkeeper())

        for delay in (None, HOUR):
            with pytest.raises(Full):
                broker.enqueue(note(queue), delay=delay)

        assert recorder.all("after_enqueue") == []
        assert_nothing_comes(consume(broker, queue))
        assert_nothing_comes(consume(broker, f"{queue}.DQ"))

    @pytest.mark.contract("DRM-03")
    def test_what_cannot_be_encoded_is_not_enqueued(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)

        with pytest.raises(TypeError):
            broker.enqueue(note(queue, object()))

        broker.enqueue(note(queue, "good"))
        assert drain(consume(broker, queue), 1) == ["good"]

    def test_a_message_enqueued_twice_comes_twice(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        message = note(queue, "again")
        broker.enqueue(message)
        broker.enqueue(message)
        assert drain(consume(broker, queue), 2) == ["again", "again"]

    @pytest.mark.contract("DRM-01")
    def test_a_large_message_comes_whole(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        text = "0123456789" * 100_000
        broker.enqueue(note(queue, text))
        assert drain(consume(broker, queue), 1) == [text]

    @pytest.mark.usefixtures("pickling")
    @pytest.mark.contract("DRM-01")
    def test_the_encoder_of_the_application_is_used(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        value = ({1, 2}, b"\x00\xff", {3: "integer key"})
        broker.enqueue(note(queue, value))
        assert drain(consume(broker, queue), 1) == [value]

    @pytest.mark.contract("DRM-01")
    def test_several_threads_enqueue_at_a_time(
        self, broker: Broker, queue: str, consume: Consume
    ) -> None:
        broker.declare_queue(queue)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: broker.enqueue(note(queue, number)), range(100)))
        assert sorted(drain(consume(broker, queue), 100)) == list(range(100))
