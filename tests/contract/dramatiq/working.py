"""What a real worker does with messages: runs, skips, retries and buries them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq import Broker, Middleware, Retry
from dramatiq.broker import MessageProxy
from dramatiq.middleware import SkipMessage

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import (
    BrokerBackend,
    Recorder,
    note,
    wait,
    working,
)
from tests.contract.helpers import wait_until

SOON = {"min_backoff": 1, "max_backoff": 1}
"""Retries without a pause to speak of."""


HALF_A_MINUTE = 30_000
"""In milliseconds."""


class Garbage(dramatiq.JSONEncoder):
    """Writes what nobody can read."""

    def encode(self, data: Any) -> bytes:
        return b"\xff\x00 not a message"


class WorkingContract:
    def test_an_actor_gets_what_was_sent(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        got: list[Any] = []

        @dramatiq.actor(broker=broker, queue_name=queue)
        def work(*args: Any, **kwargs: Any) -> None:
            got.append((args, kwargs))

        with working(broker):
            work.send(1, [2], three={"four": 5})
            recorder.wait_for("after_ack")
        assert got == [((1, [2]), {"three": {"four": 5}})]

    @pytest.mark.contract("DRW-01")
    def test_middleware_hears_of_a_success_in_this_order(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        work = dramatiq.actor(lambda: None, broker=broker, queue_name=queue, actor_name="work")
        with working(broker):
            message = work.send()
            recorder.wait_for("after_ack")
        assert recorder.of(message) == [
            "before_process_message",
            "after_process_message",
            "before_ack",
            "after_ack",
        ]

    @pytest.mark.contract("DRW-01")
    def test_middleware_hears_of_a_failure_in_this_order(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        @dramatiq.actor(broker=broker, queue_name=queue, max_retries=0)
        def work() -> None:
            raise LookupError("on purpose")

        with working(broker):
            message = work.send()
            recorder.wait_for("after_nack")
        assert recorder.of(message) == [
            "before_process_message",
            "after_process_message",
            "before_nack",
            "after_nack",
        ]
        ((_, _, outcome),) = recorder.all("after_process_message")
        assert isinstance(outcome[-1], LookupError)

    def test_threads_work_side_by_side(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        meeting = threading.Barrier(4)

        @dramatiq.actor(broker=broker, queue_name=queue, max_retries=0)
        def work() -> None:
            meeting.wait(60)

        with working(broker, threads=4):
            for _ in range(8):
                work.send()
            recorder.wait_for("after_ack", 8)
        assert recorder.all("after_nack") == []

    def test_a_worker_serves_the_queues_it_was_told(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        ran: list[str] = []
        for name in (queue, f"{queue}-other"):
            dramatiq.actor(ran.append, broker=broker, queue_name=name, actor_name=name)
            broker.enqueue(note(name, name, actor=name))
        with working(broker, queues={queue}):
            recorder.wait_for("after_ack")
        assert ran == [queue]
        with working(broker, queues={f"{queue}-other"}):
            recorder.wait_for("after_ack", 2)
        assert ran == [queue, f"{queue}-other"]

    def test_a_queue_declared_while_the_worker_runs_is_served(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        ran: list[str] = []
        with working(broker):
            work = dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
            work.send("x")
            recorder.wait_for("after_ack")
        assert ran == ["x"]

    def test_an_actor_may_send_and_wait_for_what_it_sent(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        """What an actor sends is on its way at once, not when it has ended."""
        done = threading.Event()
        inner = dramatiq.actor(done.set, broker=broker, queue_name=queue, actor_name="inner")

        @dramatiq.actor(broker=broker, queue_name=queue, max_retries=0)
        def outer() -> None:
            inner.send()
            wait(done, "the inner message has run")

        with working(broker, threads=2):
            outer.send()
            recorder.wait_for("after_ack", 2)
        assert recorder.all("after_nack") == []


class RetryingContract:
    @pytest.mark.contract("DRW-01")
    def test_a_failed_message_is_tried_again(
        self, backend: BrokerBackend, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        attempts: list[int] = []

        @dramatiq.actor(broker=broker, queue_name=queue, **SOON)
        def work() -> None:
            attempts.append(len(attempts))
            if len(attempts) < 3:
                raise RuntimeError("on purpose")

        with working(broker):
            sent = work.send()
            recorder.wait_for("after_process_message", 3)
        tries = [signal.subject for signal in recorder.all("before_process_message")]
        assert [message.message_id for message in tries] == [sent.message_id] * 3
        assert attempts == [0, 1, 2]
        assert backend.dead_letters(broker, queue) == 0

    def test_a_retry_knows_how_many_there_were_and_why(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        seen: list[dict[str, Any]] = []

        class Look(Middleware):
            def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
                seen.append(dict(message.options))

        broker.add_middleware(Look())

        @dramatiq.actor(broker=broker, queue_name=queue, max_retries=2, **SOON)
        def work() -> None:
            raise RuntimeError("on purpose")

        with working(broker):
            work.send()
            recorder.wait_for("after_nack")
        assert [options.get("retries") for options in seen] == [None, 1, 2]
        assert all("on purpose" in options["traceback"] for options in seen[1:])

    @pytest.mark.contract("DRM-05")
    def test_a_message_that_fails_for_good_is_a_dead_letter(
        self, backend: BrokerBackend, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        @dramatiq.actor(broker=broker, queue_name=queue, max_retries=2, **SOON)
        def work() -> None:
            raise RuntimeError("on purpose")

        with working(broker):
            work.send()
            recorder.wait_for("after_nack")
        assert len(recorder.all("before_process_message")) == 3
        wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")

    def test_who_is_to_hear_of_the_end_of_retries_does(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        heard: list[Any] = []
        told = threading.Event()

        @dramatiq.actor(broker=broker, queue_name=queue)
        def undertaker(message: dict[str, Any], counts: dict[str, int]) -> None:
            heard.append((message["message_id"], counts["retries"]))
            told.set()

        @dramatiq.actor(
            broker=broker, queue_name=queue, max_retries=1, on_retry_exhausted="undertaker", **SOON
        )
        def work() -> None:
            raise RuntimeError("on purpose")

        with working(broker):
            sent = work.send()
            wait(told, "the undertaker was told")
            recorder.wait_for("after_nack")
        assert heard == [(sent.message_id, 1)]

    @pytest.mark.parametrize("options", [{"max_retries": 0}, {"throws": KeyError}])
    def test_some_failures_are_not_tried_again(
        self,
        backend: BrokerBackend,
        broker: Broker,
        recorder: Recorder,
        queue: str,
        options: dict[str, Any],
    ) -> None:
        @dramatiq.actor(broker=broker, queue_name=queue, **options)
        def work() -> None:
            raise KeyError("on purpose")

        with working(broker):
            work.send()
            recorder.wait_for("after_nack")
        assert len(recorder.all("before_process_message")) == 1
        wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")

    def test_an_actor_may_ask_to_be_tried_again(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        attempts: list[int] = []

        @dramatiq.actor(broker=broker, queue_name=queue)
        def work() -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise Retry("not now", delay=1)

        with working(broker):
            sent = work.send()
            recorder.wait_for("after_process_message", 2)
        assert len(attempts) == 2
        delays = [
            signal.rest
            for signal in recorder.all("after_enqueue")
            if signal.subject.message_id == sent.message_id
        ]
        assert (1,) in delays


class SkippingContract:
    @pytest.fixture
    def garbage(self) -> Callable[[Broker, str], None]:
        """Puts bytes into a queue that are no message."""

        def put(broker: Broker, queue: str) -> None:
            encoder = dramatiq.get_encoder()
            dramatiq.set_encoder(Garbage())
            try:
                broker.enqueue(note(queue))
            finally:
                dramatiq.set_encoder(encoder)

        return put

    def test_a_skipped_message_is_done(
        self, backend: BrokerBackend, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        class Skip(Middleware):
            def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
                if message.args == ("skip",):
                    raise SkipMessage

        ran: list[str] = []
        work = dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
        broker.add_middleware(Skip())
        with working(broker):
            skipped = work.send("skip")
            work.send("run")
            recorder.wait_for("after_ack", 2)
        assert ran == ["run"]
        assert recorder.of(skipped)[1:] == ["after_skip_message", "before_ack", "after_ack"]
        assert backend.dead_letters(broker, queue) == 0

    def test_a_message_can_be_rejected_before_it_runs(
        self, backend: BrokerBackend, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        """So do the age limit and dramatiq-abort."""
        ran: list[str] = []
        work = dramatiq.actor(
            ran.append, broker=broker, queue_name=queue, actor_name="work", max_age=HALF_A_MINUTE
        )
        old = note(queue, "old")
        object.__setattr__(old, "message_timestamp", old.message_timestamp - 2 * HALF_A_MINUTE)
        with working(broker):
            broker.enqueue(old)
            work.send("new")
            recorder.wait_for("after_nack")
            recorder.wait_for("after_ack")
        assert ran == ["new"]
        assert recorder.of(old) == ["after_skip_message", "before_nack", "after_nack"]
        wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")

    @pytest.mark.contract("DRM-07")
    def test_a_message_for_an_unknown_actor_is_a_dead_letter(
        self, backend: BrokerBackend, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        ran: list[str] = []
        work = dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
        with working(broker):
            lost = broker.enqueue(note(queue, actor="nobody"))
            work.send("next")
            recorder.wait_for("after_ack")
        assert ran == ["next"]
        assert recorder.of(lost) == ["before_nack", "after_nack"]
        wait_until(lambda: backend.dead_letters(broker, queue) == 1, "there is a dead letter")

    @needs(Capability.BURIES_GARBAGE)
    @pytest.mark.contract("DRM-07")
    def test_what_is_no_message_is_a_dead_letter(
        self,
        backend: BrokerBackend,
        broker: Broker,
        recorder: Recorder,
        queue: str,
        garbage: Callable[[Broker, str], None],
    ) -> None:
        ran: list[str] = []
        work = dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
        work.send("before")
        for _ in range(3):
            garbage(broker, queue)
        work.send("after")
        with working(broker):
            recorder.wait_for("after_ack", 2)
        assert ran == ["before", "after"]
        wait_until(lambda: backend.dead_letters(broker, queue) == 3, "there are dead letters")
