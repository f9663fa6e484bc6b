"""Workers that pause, that stop, and that share a queue."""

from __future__ import annotations

import threading
from typing import Any

import dramatiq
import pytest
from dramatiq import Broker

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import (
    BrokerBackend,
    Held,
    Recorder,
    send,
    start_worker,
    wait,
    working,
)
from tests.contract.helpers import WATCHDOG, wait_until


class StoppingContract:
    def test_a_paused_worker_starts_nothing(
        self, broker: Broker, recorder: Recorder, queue: str
    ) -> None:
        ran: list[str] = []
        started = threading.Event()

        def work(value: str) -> None:
            ran.append(value)
            started.set()

        actor = dramatiq.actor(work, broker=broker, queue_name=queue)
        with working(broker) as worker:
            worker.pause()
            actor.send("x")
            assert not started.wait(0.1)
            worker.resume()
            recorder.wait_for("after_ack")
        assert ran == ["x"]

    @needs(Capability.REQUEUES)
    @pytest.mark.contract("DRW-05")
    def test_a_stopped_worker_gives_back_what_it_has_not_started(
        self, broker: Broker, queue: str, recorder: Recorder
    ) -> None:
        held = Held()

        dramatiq.actor(held.work, broker=broker, queue_name=queue)
        send(broker, queue, range(5))
        worker = start_worker(broker)
        wait(held.started, "the first has started")
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        wait_until(lambda: not worker.workers[0].running, "no more is started")
        held.go_on.set()
        stopping.join(WATCHDOG)
        assert len(held.ran) == 1

        with working(broker):
            recorder.wait_for("after_ack", 5)
        assert sorted(held.ran) == list(range(5))

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRW-02")
    def test_workers_share_a_queue_and_run_each_message_once(
        self, backend: BrokerBackend, queue: str, record: Any
    ) -> None:
        ran: list[int] = []
        brokers = [backend.open() for _ in range(2)]
        for broker in brokers:
            dramatiq.actor(ran.append, broker=broker, queue_name=queue, actor_name="work")
        recorders = [record(broker) for broker in brokers]
        with working(brokers[0], threads=2), working(brokers[1], threads=2):
            send(brokers[0], queue, range(100))
            wait_until(
                lambda: sum(len(each.all("after_ack")) for each in recorders) >= 100,
                "all messages have run",
            )
        assert sorted(ran) == list(range(100))

    @needs(Capability.DURABLE)
    @pytest.mark.contract("DRW-02")
    def test_a_message_at_work_is_not_given_to_another_worker(
        self, backend: BrokerBackend, broker: Broker, queue: str, recorder: Recorder
    ) -> None:
        ran: list[str] = []
        started, go_on = threading.Event(), threading.Event()

        def work(value: str) -> None:
            ran.append(value)
            started.set()
            wait(go_on, "the test goes on")

        other = backend.open()
        for each in (broker, other):
            dramatiq.actor(work, broker=each, queue_name=queue)
        with working(broker):
            send(broker, queue, ["x"])
            wait(started, "it has started")
            with working(other):
                started.clear()
                assert not started.wait(0.15)
            go_on.set()
            recorder.wait_for("after_ack")
        assert ran == ["x"]
