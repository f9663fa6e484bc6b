"""dramatiq-abort with its events in the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq_abort import Abort, Abortable, Event, abort
from dramatiq_abort.middleware import AbortMode

from equeue_core import QueueClosed
from equeue_dramatiq import LMDBBroker
from equeue_dramatiq.abort import LMDBEventBackend
from tests.contract.clock import Clock
from tests.contract.helpers import WATCHDOG
from tests.core.children import child, run

HOUR = 3_600_000
TIMEOUT = int(WATCHDOG * 1000)


@pytest.fixture
def events(store_path: Path) -> Iterator[LMDBEventBackend]:
    events = LMDBEventBackend(store_path, sync="off")
    yield events
    events.close()


def test_the_adapter_does_not_import_the_package_by_itself(store_path: Path) -> None:
    code = "import equeue_dramatiq; say('dramatiq_abort' in sys.modules)"
    assert run(code, store_path) == "False"


class TestEvents:
    @pytest.mark.contract("DRA-01")
    def test_an_event_is_taken_once(self, events: LMDBEventBackend) -> None:
        assert events.poll("key") is None
        events.notify([Event("key", {"a": 1}), Event("other", {})], HOUR)
        assert events.poll("key") == Event("key", {"a": 1})
        assert events.poll("key") is None
        assert events.wait_many(["key", "other"], 0) == Event("other", {})
        assert events.wait_many(["key", "other"], 1) is None

    @pytest.mark.contract("DRA-01")
    def test_by_one_of_several_processes(self, events: LMDBEventBackend, store_path: Path) -> None:
        code = f"""
            from equeue_dramatiq.abort import LMDBEventBackend
            events = LMDBEventBackend(path)
            say('ready')
            found = events.wait_many(["some", "key"], {TIMEOUT})
            say(found.key, found.params)
            say(sum(events.poll(f"key {{n}}") is not None for n in range(100)))
        """
        assert events.poll("key") is None
        with child(code, store_path) as one, child(code, store_path) as other:
            assert (one.hear(), other.hear()) == ("ready", "ready")
            events.notify([Event(f"key {number}", {}) for number in range(100)], HOUR)
            events.notify([Event("key", {"a": 1})], HOUR)
            events.notify([Event("some", {"a": 1})], HOUR)
            assert {one.hear(), other.hear()} == {"key {'a': 1}", "some {'a': 1}"}
            assert int(one.hear()) + int(other.hear()) == 100

    @pytest.mark.contract("DRA-01")
    def test_it_is_there_for_its_time(
        self, events: LMDBEventBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock()
        clock.install(monkeypatch)
        events.notify([Event("key", {})], 10_000)
        clock.advance(11)
        assert events.poll("key") is None
        assert events.wait_many(["key"], 0) is None

    @pytest.mark.parametrize("timeout", [0, 30])
    def test_a_wait_in_vain_lasts_as_long_as_asked(
        self, events: LMDBEventBackend, timeout: int
    ) -> None:
        start = time.monotonic()
        assert events.wait_many(["one", "two"], timeout) is None
        assert timeout / 1000 <= time.monotonic() - start < WATCHDOG

    def test_what_cannot_be_stored_is_refused_as_a_whole(self, events: LMDBEventBackend) -> None:
        with pytest.raises(TypeError):
            events.notify([Event("key", {}), Event("other", {"a": object()})], HOUR)
        assert events.poll("key") is None

    def test_a_closed_one_refuses_everything(self, events: LMDBEventBackend) -> None:
        events.close()
        with pytest.raises(QueueClosed):
            events.poll("key")
        with pytest.raises(QueueClosed):
            events.wait_many(["key"], None)


class TestWithAWorker:
    @pytest.fixture
    def broker(self, store_path: Path) -> Iterator[LMDBBroker]:
        broker = LMDBBroker(store_path, sync="off")
        yield broker
        broker.close()

    @pytest.fixture
    def abortable(self, broker: LMDBBroker, events: LMDBEventBackend) -> Abortable:
        abortable = Abortable(backend=events)
        broker.add_middleware(abortable)
        return abortable

    @pytest.mark.contract("DRA-02")
    def test_a_running_message_is_aborted(self, broker: LMDBBroker, abortable: Abortable) -> None:
        started, aborted = threading.Event(), threading.Event()

        @dramatiq.actor(broker=broker, max_retries=0)
        def work() -> None:
            try:
                started.set()
                while True:
                    time.sleep(0.005)
            except Abort:
                aborted.set()
                raise

        worker = Worker(broker, worker_threads=1, worker_timeout=50)
        worker.start()
        try:
            message = work.send()
            assert started.wait(WATCHDOG)
            abort(message.message_id, middleware=abortable)
            assert aborted.wait(WATCHDOG)
            broker.join("default", timeout=TIMEOUT)
        finally:
            worker.stop()

    @pytest.mark.parametrize("mode", list(AbortMode))
    @pytest.mark.contract("DRA-02")
    def test_a_message_that_waits_is_skipped(
        self, broker: LMDBBroker, abortable: Abortable, mode: AbortMode
    ) -> None:
        ran = []

        @dramatiq.actor(broker=broker)
        def work(number: int) -> None:
            ran.append(number)

        messages = [work.send(number) for number in range(3)]
        abort(messages[1].message_id, middleware=abortable, mode=mode)
        worker = Worker(broker, worker_threads=1, worker_timeout=50)
        worker.start()
        try:
            broker.join("default", timeout=TIMEOUT)
        finally:
            worker.stop()
        assert ran == [0, 2]
