"""Results, pipelines, groups and their callbacks, through a worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import dramatiq
import pytest
from dramatiq import Actor, Broker, Middleware, group, pipeline
from dramatiq.broker import MessageProxy
from dramatiq.middleware import GroupCallbacks, SkipMessage
from dramatiq.results import ResultBackend, ResultFailure, ResultMissing, Results

from tests.contract.dramatiq.helpers import BrokerBackend, Recorder, wait, working
from tests.contract.helpers import WATCHDOG

TIMEOUT = int(WATCHDOG * 1000)

Stored = Callable[..., Any]


def add(one: int, other: int) -> int:
    return one + other


def fail() -> None:
    raise LookupError("on purpose")


class ComposingContract:
    @pytest.fixture
    def results(
        self, backend: BrokerBackend, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> ResultBackend:
        """Where the broker's actors store their results. It is the application's broker."""
        monkeypatch.setattr("dramatiq.broker.global_broker", broker)
        results = backend.results()
        broker.add_middleware(Results(backend=results))
        return results

    @pytest.fixture
    def stored(self, broker: Broker, results: ResultBackend, queue: str) -> Stored:
        """Makes an actor of a function, one that stores results and fails at once."""

        def declare(function: Callable[..., Any], **options: Any) -> Actor[..., Any]:
            options = {"store_results": True, "max_retries": 0, **options}
            return dramatiq.actor(function, broker=broker, queue_name=queue, **options)

        return declare

    @pytest.mark.parametrize("value", [42, None, "", [1, {"two": None}]])
    @pytest.mark.contract("DRR-01")
    def test_a_result_can_be_had(
        self, broker: Broker, results: ResultBackend, stored: Stored, value: Any
    ) -> None:
        @stored
        def give() -> Any:
            return value

        with working(broker):
            message = give.send()
            got = message.get_result(backend=results, block=True, timeout=TIMEOUT)
        assert got == value

    def test_a_result_is_there_when_the_message_is_acked(
        self, broker: Broker, results: ResultBackend, stored: Stored, recorder: Recorder
    ) -> None:
        got: list[Any] = []

        class Look(Middleware):
            def after_ack(self, broker: Broker, message: MessageProxy) -> None:
                got.append(results.get_result(message))

        broker.add_middleware(Look())
        work = stored(add)
        with working(broker):
            work.send(1, 2)
            recorder.wait_for("after_ack")
        assert got == [3]

    @pytest.mark.contract("DRR-01")
    def test_a_failure_is_a_result(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        work = stored(fail)
        with working(broker):
            message = work.send()
            with pytest.raises(ResultFailure) as caught:
                message.get_result(backend=results, block=True, timeout=TIMEOUT)
        assert caught.value.orig_exc_type == "LookupError"
        assert "on purpose" in caught.value.orig_exc_msg

    def test_a_failure_that_is_tried_again_is_no_result(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        attempts: list[int] = []

        def work() -> str:
            attempts.append(1)
            if len(attempts) < 3:
                raise LookupError("on purpose")
            return "good"

        actor = stored(work, max_retries=5, min_backoff=1, max_backoff=1)
        with working(broker):
            message = actor.send()
            assert message.get_result(backend=results, block=True, timeout=TIMEOUT) == "good"

    @pytest.mark.contract("DRR-01")
    def test_a_skipped_message_has_none_as_its_result(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        class Skip(Middleware):
            def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
                raise SkipMessage

        broker.add_middleware(Skip())
        work = stored(add)
        with working(broker):
            message = work.send(1, 2)
            assert message.get_result(backend=results, block=True, timeout=TIMEOUT) is None

    @pytest.mark.contract("DRW-01")
    def test_a_pipeline_hands_results_on(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        work = stored(add)
        with working(broker):
            line = work.message(1, 2) | work.message(3) | work.message(4)
            pipe = pipeline(line.messages, broker=broker).run()
            assert pipe.get_result(block=True, timeout=TIMEOUT) == 10
            assert list(pipe.get_results(block=True, timeout=TIMEOUT)) == [3, 6, 10]
            assert pipe.completed_count == len(pipe) == 3

    def test_a_pipeline_may_ignore_a_result(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        work = stored(add)
        last = work.message_with_options(args=(20, 30), pipe_ignore=True)
        with working(broker):
            pipe = pipeline([work.message(1, 2), last], broker=broker).run(delay=1)
            assert pipe.get_result(block=True, timeout=TIMEOUT) == 50

    def test_a_pipeline_ends_where_it_fails(
        self, broker: Broker, results: ResultBackend, stored: Stored, recorder: Recorder
    ) -> None:
        good, bad = stored(add), stored(fail)
        with working(broker):
            pipe = pipeline([bad.message(), good.message(1, 2)], broker=broker).run()
            recorder.wait_for("after_nack")
            with pytest.raises(ResultMissing):
                pipe.get_result()
        assert len(recorder.all("before_process_message")) == 1

    def test_a_group_has_the_results_of_its_members_in_order(
        self, broker: Broker, results: ResultBackend, stored: Stored
    ) -> None:
        work = stored(add)
        with working(broker, threads=4):
            members = group([work.message(n, n) for n in range(10)], broker=broker).run()
            got = list(members.get_results(block=True, timeout=TIMEOUT))
            assert members.completed
        assert got == [2 * n for n in range(10)]

    @pytest.mark.contract("DRW-01")
    def test_a_group_calls_back_once_when_all_are_done(
        self,
        backend: BrokerBackend,
        broker: Broker,
        results: ResultBackend,
        stored: Stored,
        recorder: Recorder,
    ) -> None:
        broker.add_middleware(GroupCallbacks(backend.limits()))
        done: list[int] = []
        done_at_call: list[int] = []
        others_are_done = threading.Event()

        def work(number: int) -> None:
            if number == 0:
                wait(others_are_done, "the others are done")
            done.append(number)
            if len(done) == 5:
                others_are_done.set()

        actor = stored(work)
        call = stored(lambda: done_at_call.append(len(done)), actor_name="call")
        line = [actor.message(4), actor.message_with_options(args=(5,), pipe_ignore=True)]
        members = group(
            [*map(actor.message, range(4)), pipeline(line, broker=broker)], broker=broker
        )
        members.add_completion_callback(call.message())
        with working(broker, threads=2):
            members.run()
            recorder.wait_for("after_ack", 7)
        assert done_at_call == [6]
        assert done[-1] == 0

    def test_a_group_with_a_failure_does_not_call_back(
        self,
        backend: BrokerBackend,
        broker: Broker,
        results: ResultBackend,
        stored: Stored,
        recorder: Recorder,
    ) -> None:
        broker.add_middleware(GroupCallbacks(backend.limits()))
        called: list[str] = []
        good, bad, call = stored(add), stored(fail), stored(called.append, actor_name="call")
        members = group([good.message(1, 2), bad.message()], broker=broker)
        members.add_completion_callback(call.message("done"))
        with working(broker):
            members.run()
            recorder.wait_for("after_nack")
            recorder.wait_for("after_ack")
            marker = good.send(3, 4)
            assert marker.get_result(backend=results, block=True, timeout=TIMEOUT) == 7
        assert called == []
