"""The results backend on the store: processes, time, waiting, and the commit shared with the ack."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Message, Worker
from dramatiq.encoder import PickleEncoder
from dramatiq.results import ResultFailure, ResultMissing, Results, ResultTimeout

from equeue_core import DiskFull, QueueClosed, Store, storage
from equeue_core._store._ballast import Ballast
from equeue_dramatiq import LMDBBroker, LMDBResultBackend
from tests.contract.clock import Clock
from tests.contract.helpers import WATCHDOG, wait_until
from tests.core._forked import Line, forked
from tests.core.children import Child, child
from tests.waits import counted_transactions, waiting

HOUR = 3_600_000
TIMEOUT = int(WATCHDOG * 1000)

USE = """
import dramatiq
from dramatiq import Message
from dramatiq.results import ResultFailure
from equeue_dramatiq import LMDBResultBackend
results = LMDBResultBackend(path)
def note(number):
    return Message("default", "work", (), {}, {}, message_id=f"message {number}", message_timestamp=1)
"""


def note(number: int = 0) -> Message[Any]:
    return Message(
        "default", "work", (), {}, {}, message_id=f"message {number}", message_timestamp=1
    )


@pytest.fixture
def results(store_path: Path) -> Iterator[LMDBResultBackend]:
    results = LMDBResultBackend(store_path, sync="off")
    yield results
    results.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.install(monkeypatch)
    return clock


def entries(results: LMDBResultBackend) -> int:
    """How many keys the results have on disk, expiry entries included."""
    prefix = storage.key_prefix(storage.SpaceId.DRAMATIQ_RESULTS)
    with Store(results.store.path) as store:
        space = storage.Space(store, storage.SpaceId.DRAMATIQ_RESULTS)
        return space.read(lambda txn: sum(1 for _ in storage.scan(txn, prefix)))


class TestHandles:
    def test_making_one_touches_no_disk(self, store_path: Path) -> None:
        results = LMDBResultBackend(store_path)
        assert not store_path.exists()
        results.close()
        assert not store_path.exists()

    def test_it_takes_a_path_or_a_store(self, store_path: Path) -> None:
        with Store(store_path, sync="off") as store:
            store.queues()
            backends = [
                LMDBResultBackend(store_path),
                LMDBResultBackend(os.fspath(store_path), sync="off"),
                LMDBResultBackend(store),
                LMDBResultBackend(store=store),
            ]
            backends[0].store_result(note(), "x", HOUR)
            assert [backend.get_result(note()) for backend in backends] == ["x"] * 4
            for backend in backends:
                backend.close()
            assert store.queues() == []  # still open

    def test_a_bad_option_is_refused_at_once(self, store_path: Path) -> None:
        with pytest.raises(ValueError, match="sync"):
            LMDBResultBackend(store_path, sync="sometimes")  # type: ignore[arg-type]

    def test_a_closed_one_refuses_everything(self, results: LMDBResultBackend) -> None:
        results.close()
        results.close()
        with pytest.raises(QueueClosed):
            results.get_result(note())
        with pytest.raises(QueueClosed):
            results.get_result(note(), block=True)
        with pytest.raises(QueueClosed):
            results.store_result(note(), "x", HOUR)

    def test_it_can_be_pickled(self, store_path: Path) -> None:
        results = LMDBResultBackend(store_path, namespace="name", encoder=PickleEncoder())
        results.store_result(note(), {1, 2}, HOUR)
        copy = pickle.loads(pickle.dumps(results))
        assert copy.get_result(note()) == {1, 2}
        copy.close()
        results.close()

    def test_it_goes_on_in_a_forked_child(self, results: LMDBResultBackend) -> None:
        results.store_result(note(1), "before", HOUR)
        ended = waiting(lambda: results.get_result(note(3), block=True, timeout=TIMEOUT))

        def use(line: Line) -> None:
            line.say(results.get_result(note(1)))
            line.say(results.get_result(note(2), block=True, timeout=TIMEOUT))
            results.store_result(note(3), "child", HOUR)

        with forked(use) as other:
            assert other.hear() == "before"
            results.store_result(note(2), "parent", HOUR)
            assert other.hear() == "parent"
            assert ended() == "child"
            assert other.wait() == 0


class TestProcesses:
    @pytest.mark.contract("DRR-02")
    def test_several_processes_wait_for_one_result(
        self, results: LMDBResultBackend, store_path: Path
    ) -> None:
        script = USE + "say('waiting')\nfor _ in range(2):\n"
        script += f"    say(results.get_result(note(0), block=True, timeout={TIMEOUT}))\n"

        def check(others: list[Child]) -> None:
            if len(others) < 4:
                with child(script, store_path) as other:
                    check([*others, other])
                return
            assert [other.hear() for other in others] == ["waiting"] * 4
            results.store_result(note(), "x", HOUR)
            assert [other.hear() for other in others] == ["x"] * 4
            assert [other.hear() for other in others] == ["x"] * 4

        results.store_result(note(1), "of another message", HOUR)
        check([])

    def test_another_process_stores_results_and_exceptions(
        self, results: LMDBResultBackend, store_path: Path
    ) -> None:
        script = """
            hear()
            results.store_result(note(0), None, 3600000)
            results.store_exception(note(1), KeyError("there"), 3600000)
        """
        with child(
            USE + "\n".join(line.strip() for line in script.splitlines()), store_path
        ) as other:
            ended = [
                waiting(
                    lambda number=number: results.get_result(  # type: ignore[misc]
                        note(number), block=True, timeout=TIMEOUT
                    )
                )
                for number in range(2)
            ]
            other.say("go")
            assert ended[0]() is None
            failure = ended[1]()
            assert isinstance(failure, ResultFailure)
            assert (failure.orig_exc_type, failure.orig_exc_msg) == ("KeyError", "'there'")
            assert other.wait() == 0


class TestTime:
    @pytest.mark.contract("DRR-01")
    def test_a_result_is_there_for_its_time(self, results: LMDBResultBackend, clock: Clock) -> None:
        results.store_result(note(), "x", 10_500)
        clock.advance(10.4)
        assert results.get_result(note()) == "x"
        clock.advance(0.2)
        with pytest.raises(ResultMissing):
            results.get_result(note())
        with pytest.raises(ResultTimeout):
            results.get_result(note(), block=True, timeout=0)

    @pytest.mark.contract("DRR-04")
    def test_expired_results_are_removed_a_few_at_a_time(
        self, results: LMDBResultBackend, clock: Clock
    ) -> None:
        for number in range(200):
            results.store_result(note(number), "x", 10_000)
        clock.advance(11)
        before = entries(results)
        assert before == 400
        results.store_result(note(1000), "x", HOUR)
        assert 398 >= entries(results) >= 380
        for number in range(1001, 1100):
            results.store_result(note(number), "x", HOUR)
        assert entries(results) == 2 * 100
        assert results.store.check().ok

    @pytest.mark.parametrize("timeout", [1, 50, 350])
    @pytest.mark.contract("DRR-02")
    def test_a_wait_in_vain_lasts_as_long_as_asked(
        self, results: LMDBResultBackend, timeout: int
    ) -> None:
        start = time.monotonic()
        with pytest.raises(ResultTimeout):
            results.get_result(note(), block=True, timeout=timeout)
        assert timeout / 1000 <= time.monotonic() - start < timeout / 1000 + WATCHDOG

    def test_a_timeout_of_nothing_is_a_look(self, results: LMDBResultBackend) -> None:
        for timeout in (0, -1):
            with pytest.raises(ResultTimeout):
                results.get_result(note(), block=True, timeout=timeout)
        results.store_result(note(), "x", HOUR)
        for timeout in (0, -1):
            assert results.get_result(note(), block=True, timeout=timeout) == "x"

    @pytest.mark.contract("DRR-02")
    def test_a_wait_costs_no_poll(
        self, results: LMDBResultBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results.store_result(note(1), "x", HOUR)
        environment = results.store._environment
        looks = counted_transactions(environment, monkeypatch)
        start = time.monotonic()
        with pytest.raises(ResultTimeout):
            results.get_result(note(), block=True, timeout=900)
        assert len(looks) <= 3 + (time.monotonic() - start - 0.9)

    def test_each_of_many_gets_its_own(self, results: LMDBResultBackend) -> None:
        """Forty wait while a thousand other results are stored, which wake some of them for nothing."""
        ended = [
            waiting(
                lambda number=number: results.get_result(  # type: ignore[misc]
                    note(number), block=True, timeout=TIMEOUT
                )
            )
            for number in range(40)
        ]
        for number in range(1000):
            results.store_result(note(1000 + number), number, HOUR)
        for number in range(40):
            results.store_result(note(number), number, HOUR)
        assert [end() for end in ended] == list(range(40))

    def test_closing_ends_the_waits(self, results: LMDBResultBackend) -> None:
        ended = waiting(lambda: results.get_result(note(), block=True, timeout=TIMEOUT))
        results.close()
        assert isinstance(ended(), QueueClosed)


class TestWithABroker:
    @pytest.fixture
    def broker(self, store_path: Path) -> Iterator[LMDBBroker]:
        broker = LMDBBroker(store_path, sync="off")
        yield broker
        broker.close()

    @pytest.mark.parametrize("shares", ["the path", "the store"])
    @pytest.mark.contract("DRE-02")
    def test_a_result_is_committed_with_the_ack(
        self, broker: LMDBBroker, store_path: Path, shares: str
    ) -> None:
        """Whoever sees a result does not see its message in hand any more."""
        results = LMDBResultBackend(store_path if shares == "the path" else broker.store)
        broker.add_middleware(Results(backend=results))

        @dramatiq.actor(broker=broker, store_results=True)
        def double(number: int) -> int:
            return 2 * number

        worker = Worker(broker, worker_threads=2, worker_timeout=50)
        worker.start()
        try:
            for number in range(50):
                message = double.send(number)
                assert (
                    message.get_result(backend=results, block=True, timeout=TIMEOUT) == 2 * number
                )
                assert broker.stats("default")["running"] == 0
        finally:
            worker.stop()
            results.close()

    @pytest.mark.contract("DRE-02")
    def test_one_in_another_directory_has_a_commit_of_its_own(
        self, broker: LMDBBroker, tmp_path: Path
    ) -> None:
        results = LMDBResultBackend(tmp_path / "results", sync="off")
        broker.add_middleware(Results(backend=results))

        @dramatiq.actor(broker=broker, store_results=True)
        def double(number: int) -> int:
            return 2 * number

        worker = Worker(broker, worker_threads=1, worker_timeout=50)
        worker.start()
        try:
            message = double.send(4)
            assert message.get_result(backend=results, block=True, timeout=TIMEOUT) == 8
        finally:
            worker.stop()
            results.close()

    def test_middleware_can_wait_for_what_it_just_sent(
        self, broker: LMDBBroker, store_path: Path
    ) -> None:
        """Before it waits, a thread commits what it holds back for the ack."""
        results = LMDBResultBackend(store_path)
        broker.add_middleware(Results(backend=results))
        seen: list[Any] = []

        @dramatiq.actor(broker=broker, store_results=True)
        def double(number: int) -> int:
            return 2 * number

        @dramatiq.actor(broker=broker)
        def first() -> None:
            pass

        class Asks(dramatiq.Middleware):
            def after_process_message(self, broker: Any, message: Any, **_: Any) -> None:
                if message.actor_name == "first":
                    answer = double.send(4)
                    seen.append(answer.get_result(backend=results, block=True, timeout=TIMEOUT))

        broker.add_middleware(Asks())
        worker = Worker(broker, worker_threads=2, worker_timeout=50)
        worker.start()
        try:
            first.send()
            wait_until(lambda: bool(seen), "the middleware has got its answer")
            assert seen == [8]
        finally:
            worker.stop()
            results.close()


def test_an_operation_can_go_with_others(results: LMDBResultBackend) -> None:
    queue = results.store.queue()
    queue.put("x")
    record = queue.get_nowait()
    key = results.build_message_key(note())
    operation = results.store_operation(key, results.encoder.encode("made"), HOUR)
    with results.store.transaction() as transaction:
        transaction.ack(record)
        results._space.collect(transaction, operation)
        with pytest.raises(ResultMissing):
            results.get_result(note())
    assert results.get_result(note()) == "made"


def test_a_full_disk_refuses_results(
    results: LMDBResultBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.store_result(note(1), "x", HOUR)
    monkeypatch.setattr(Ballast, "_look", lambda self: None)
    results.store._environment._ballast.spent = True
    with pytest.raises(DiskFull):
        results.store_result(note(2), "y", HOUR)
    assert results.get_result(note(1)) == "x"
    with pytest.raises(ResultMissing):
        results.get_result(note(2))
