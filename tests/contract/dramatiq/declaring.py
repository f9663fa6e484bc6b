"""Queues, actors and middleware are declared, in any order, as often as one likes."""

from __future__ import annotations

import dramatiq
import pytest
from dramatiq import ActorNotFound, Broker, QueueNotFound

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import TICK, Recorder, note

DECLARED = ("before_declare_queue", "after_declare_queue", "after_declare_delay_queue")


def declarations(recorder: Recorder) -> list[tuple[str, str]]:
    return [(signal.name, signal.subject) for signal in recorder.all(*DECLARED)]


class DeclaringContract:
    @pytest.mark.contract("DRM-02")
    def test_a_queue_is_declared_with_its_delay_queue(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        broker.declare_queue(queue)

        assert declarations(recorder) == [
            ("before_declare_queue", queue),
            ("after_declare_queue", queue),
            ("after_declare_delay_queue", f"{queue}.DQ"),
        ]
        assert queue in broker.get_declared_queues()
        assert broker.get_declared_delay_queues() == {f"{queue}.DQ"}

    @pytest.mark.contract("DRM-02")
    def test_a_queue_is_declared_once(self, broker: Broker, recorder: Recorder, queue: str) -> None:
        broker.declare_queue(queue)
        before = declarations(recorder)

        broker.declare_queue(queue)

        assert declarations(recorder) == before

    @needs(Capability.PLAIN_NAMES)
    @pytest.mark.contract("DRM-02")
    def test_a_delay_queue_is_no_queue_of_its_own(self, broker: Broker, queue: str) -> None:
        broker.declare_queue(queue)
        assert broker.get_declared_queues() == {queue}

    def test_the_names_told_are_a_copy(self, broker: Broker, queue: str) -> None:
        broker.declare_queue(queue)
        broker.get_declared_queues().clear()
        broker.get_declared_delay_queues().clear()
        assert queue in broker.get_declared_queues()
        assert broker.get_declared_delay_queues() == {f"{queue}.DQ"}

    def test_an_actor_declares_its_queue(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        actor = dramatiq.actor(lambda: None, broker=broker, queue_name=queue, actor_name="work")

        names = ("before_declare_actor", *DECLARED, "after_declare_actor")
        assert [(signal.name, signal.subject) for signal in recorder.all(*names)] == [
            ("before_declare_actor", actor),
            *declarations(recorder),
            ("after_declare_actor", actor),
        ]
        assert len(declarations(recorder)) == 3
        assert broker.get_declared_actors() == {"work"}
        assert broker.get_actor("work") is actor

    def test_an_actor_that_was_not_declared_is_not_found(self, broker: Broker) -> None:
        with pytest.raises(ActorNotFound):
            broker.get_actor("work")

    @pytest.mark.contract("DRM-02")
    def test_middleware_that_comes_late_is_told_what_is_declared(
        self, broker: Broker, queue: str
    ) -> None:
        actor = dramatiq.actor(lambda: None, broker=broker, queue_name=queue, actor_name="work")
        late = Recorder()

        broker.add_middleware(late)

        assert ("after_declare_queue", queue) in declarations(late)
        assert ("after_declare_delay_queue", f"{queue}.DQ") in declarations(late)
        assert [signal.subject for signal in late.all("after_declare_actor")] == [actor]

    @needs(Capability.REFUSES_UNDECLARED)
    def test_a_queue_that_was_not_declared_is_not_found(self, broker: Broker, queue: str) -> None:
        with pytest.raises(QueueNotFound):
            broker.enqueue(note(queue))
        with pytest.raises(QueueNotFound):
            broker.consume(queue, timeout=TICK)

    def test_a_broker_may_be_closed_again(self, broker: Broker, queue: str) -> None:
        broker.declare_queue(queue)
        broker.enqueue(note(queue))
        broker.close()
        broker.close()
