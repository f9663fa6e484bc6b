"""What is committed together with a message's end: its retry, what follows it, what its callbacks send."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Middleware, Worker, group, pipeline
from dramatiq.errors import ConnectionClosed, Retry
from dramatiq.middleware import GroupCallbacks
from dramatiq.results import ResultFailure, Results

from equeue_core import DiskFull, Store
from equeue_core.storage import Space, SpaceId
from equeue_dramatiq import LMDBBroker, LMDBRateLimiterBackend, LMDBResultBackend
from equeue_dramatiq._message import LMDBMessage

WATCHDOG = 20_000  # milliseconds


class Looks(Middleware):
    """Notes what the store holds when an actor has run, at the ack, and after it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, int]]] = []

    def _look(self, broker: Any, signal: str, message: Any) -> None:
        with Store(broker.store.path) as store:  # a handle of its own: it asks for no held commit
            counts = store.stats()[f"dramatiq:{message.queue_name}"]
        self.seen.append((signal, message.actor_name, counts))

    def before_ack(self, broker: Any, message: Any) -> None:
        self._look(broker, "before_ack", message)

    def after_ack(self, broker: Any, message: Any) -> None:
        self._look(broker, "after_ack", message)

    def of(self, actor_name: str) -> list[tuple[str, int, int, int]]:
        return [
            (signal, counts["running"], counts["pending"], counts["scheduled"])
            for signal, name, counts in self.seen
            if name == actor_name
        ]


def run_until_done(broker: LMDBBroker, queue_name: str = "default") -> None:
    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    try:
        broker.join(queue_name, timeout=WATCHDOG)
        worker.join()
    finally:
        worker.stop()


@pytest.mark.contract("DRE-01")
def test_a_retry_and_the_ack_of_the_first_try_are_one_commit(broker: LMDBBroker) -> None:
    looks = Looks()
    broker.add_middleware(looks)
    tries = []

    @dramatiq.actor(min_backoff=1, max_backoff=1, max_retries=1)
    def fails_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("the first time")

    fails_once.send()
    run_until_done(broker)
    assert len(tries) == 2
    first_before, first_after = looks.of("fails_once")[:2]
    assert first_before == ("before_ack", 1, 0, 0)  # nothing is enqueued yet
    assert first_after[0] == "after_ack"
    assert sum(first_after[1:]) == 1  # and now the retry, alone


@pytest.mark.contract("DRE-01")
def test_the_next_of_a_pipeline_and_the_ack_are_one_commit(broker: LMDBBroker) -> None:
    looks = Looks()
    broker.add_middleware(looks)
    got = []

    @dramatiq.actor(queue_name="one")
    def first() -> int:
        return 1

    @dramatiq.actor(queue_name="two")
    def second(number: int) -> None:
        got.append(number)

    broker.queue("two").pause()
    pipeline([first.message(), second.message()]).run()
    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    try:
        broker.join("one", timeout=WATCHDOG)
        worker.join()
        assert broker.stats("two")["pending"] == 1
        broker.queue("two").resume()
        broker.join("two", timeout=WATCHDOG)
    finally:
        worker.stop()
    assert got == [1]


@pytest.mark.contract("DRE-03")
def test_a_retry_that_cannot_be_stored_leaves_the_message_in_hand(
    broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.01)
    refused = []
    transaction = Store.transaction

    def refuse_twice(store: Store) -> Any:
        if len(refused) < 2:
            refused.append(broker.stats("default"))
            raise DiskFull("no space left")
        return transaction(store)

    tries = []

    @dramatiq.actor(min_backoff=1, max_backoff=1, max_retries=1)
    def fails_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            monkeypatch.setattr(Store, "transaction", refuse_twice)
            raise RuntimeError("the first time")

    fails_once.send()
    run_until_done(broker)
    assert [counts["running"] for counts in refused] == [1, 1]
    assert [counts["scheduled"] + counts["pending"] for counts in refused] == [0, 0]
    assert len(tries) == 2
    assert broker.stats("default")["failed"] == 0


@pytest.mark.parametrize("delay", [float("inf"), 10**320], ids=["infinite", "huge"])
def test_a_retry_may_be_put_off_for_ever(broker: LMDBBroker, delay: float) -> None:
    ran = threading.Event()

    @dramatiq.actor
    def puts_off() -> None:
        raise Retry(delay=delay)  # type: ignore[arg-type]

    @dramatiq.actor
    def follows() -> None:
        ran.set()

    puts_off.send()
    follows.send()
    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    try:
        assert ran.wait(WATCHDOG / 1000)
        worker.join()
    finally:
        worker.stop()
    assert broker.get_queue_message_counts("default") == (0, 1, 0)


def test_an_end_that_cannot_be_written_keeps_no_thread_from_the_next_message(
    broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def refuse(message: LMDBMessage) -> None:
        raise MemoryError

    @dramatiq.actor(min_backoff=1, max_backoff=1, max_retries=100)
    def fails() -> None:
        runs.append(1)
        raise RuntimeError("always")

    @dramatiq.actor
    def follows() -> None: ...

    monkeypatch.setattr(LMDBMessage, "commit_held", refuse)
    fails.send()
    follows.send()
    run_until_done(broker)
    counts = broker.stats("default")
    assert (counts["failed"], counts["total"]) == (1, 2)
    assert len(runs) == broker.delivery_limit + 1


def test_a_thread_that_cannot_end_its_message_is_not_given_another(
    broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.01)
    seen = []
    transaction = Store.transaction

    def refuse(store: Store) -> Any:
        if len(seen) < 30:
            seen.append(broker.stats("default"))
            raise DiskFull("no space left")
        return transaction(store)

    @dramatiq.actor(min_backoff=1, max_backoff=1, max_retries=1)
    def fails() -> None:
        monkeypatch.setattr(Store, "transaction", refuse)
        raise RuntimeError("always")

    @dramatiq.actor
    def waits() -> None: ...

    fails.send()
    waits.send()
    run_until_done(broker)
    assert {(counts["running"], counts["pending"]) for counts in seen} == {(1, 1)}


@pytest.mark.contract("DRE-04")
def test_what_an_actor_sends_itself_is_sent_at_once(broker: LMDBBroker) -> None:
    looked = []

    @dramatiq.actor(queue_name="other")
    def other() -> None: ...

    @dramatiq.actor
    def sends() -> None:
        other.send()
        looked.append(broker.stats("other")["pending"])

    broker.queue("other").pause()
    sends.send()
    run_until_done(broker)
    assert looked == [1]


def test_a_thread_of_the_same_process_is_not_held_back(broker: LMDBBroker) -> None:
    """Only the thread that ends a message holds its puts back."""
    sent = threading.Event()

    class SendsElsewhere(Middleware):
        def after_process_message(self, broker: Any, message: Any, **_: Any) -> None:
            if message.actor_name == "work":
                thread = threading.Thread(target=other.send)
                thread.start()
                thread.join()
                looked.append(broker.stats("other")["pending"])
                sent.set()

    looked: list[int] = []
    broker.add_middleware(SendsElsewhere())

    @dramatiq.actor(queue_name="other")
    def other() -> None: ...

    @dramatiq.actor
    def work() -> None: ...

    broker.queue("other").pause()
    work.send()
    run_until_done(broker)
    assert sent.is_set()
    assert looked == [1]


@pytest.mark.contract("DRE-05")
def test_who_looks_while_a_message_ends_sees_what_was_enqueued(broker: LMDBBroker) -> None:
    looked = []

    class Sends(Middleware):
        def after_process_message(self, broker: Any, message: Any, **_: Any) -> None:
            if message.actor_name == "work":
                other.send()
                looked.append(broker.stats("other")["pending"])

    broker.add_middleware(Sends())

    @dramatiq.actor(queue_name="other")
    def other() -> None: ...

    @dramatiq.actor
    def work() -> None: ...

    broker.queue("other").pause()
    work.send()
    run_until_done(broker)
    assert looked == [1]
    assert broker.stats("other")["pending"] == 1


@pytest.mark.contract("DRM-12")
def test_many_at_once_are_all_or_none(broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    @dramatiq.actor(queue_name="one")
    def one() -> None: ...

    @dramatiq.actor(queue_name="two")
    def two() -> None: ...

    enqueued = broker.enqueue_many([one.message(), two.message(), one.message()])
    assert [message.queue_name for message in enqueued] == ["one", "two", "one"]
    assert broker.stats("one")["pending"] == 2
    bad = two.message_with_options(broker_priority=256)
    with pytest.raises(ValueError, match="broker_priority"):
        broker.enqueue_many([one.message(), bad])
    monkeypatch.setattr(Store, "transaction", lambda store: (_ for _ in ()).throw(DiskFull("full")))
    with pytest.raises(ConnectionClosed, match="full"):
        broker.enqueue_many([one.message(), two.message()])
    monkeypatch.undo()
    assert broker.stats("one")["pending"] == 2
    assert broker.stats("two")["pending"] == 1


@pytest.mark.contract("DRM-12")
def test_many_takes_groups_and_pipelines(broker: LMDBBroker) -> None:
    @dramatiq.actor
    def work(number: int = 0) -> int:
        return number

    several = dramatiq.group([work.message(1), work.message(2)])
    chain = work.message(3) | work.message()
    enqueued = broker.enqueue_many([several, chain, work.message(4)], delay=60_000)
    assert [message.args for message in enqueued] == [(1,), (2,), (3,), (4,)]
    assert broker.get_queue_message_counts("default") == (0, 4, 0)


# Results


def add_results(broker: LMDBBroker, store: Store | Path) -> LMDBResultBackend:
    backend = LMDBResultBackend(store)
    broker.add_middleware(Results(backend=backend, store_results=True))
    return backend


def commits(path: str) -> int:
    """How many transactions the store has seen."""
    with Store(path) as store, Space(store, SpaceId.RQ) as space:
        return int(space.read(lambda txn: txn.id()))


@pytest.mark.contract("DRE-02")
def test_a_result_and_the_ack_are_one_commit(broker: LMDBBroker, tmp_path: Path) -> None:
    # A handle of its own on the same directory, by another path.
    (tmp_path / "link").symlink_to(tmp_path / "data")
    backend = add_results(broker, tmp_path / "link")

    @dramatiq.actor
    def work() -> int:
        return 42

    consumer = broker.consume("default", timeout=1000)
    message = work.send()
    claimed = next(consumer)
    assert claimed is not None
    before = commits(broker.store.path)
    broker.emit_after("process_message", claimed, result=42)
    assert commits(broker.store.path) == before
    consumer.ack(claimed)
    assert commits(broker.store.path) == before + 1
    assert backend.get_result(message) == 42
    backend.close()


@pytest.mark.contract("DRE-02")
def test_a_result_is_not_kept_waiting_if_others_may_be_told(broker: LMDBBroker) -> None:
    backend = add_results(broker, broker.store)
    told = []

    class Tells(Middleware):
        def before_ack(self, broker: Any, message: Any) -> None:
            # As somebody else: in a thread that holds nothing back.
            thread = threading.Thread(target=lambda: told.append(backend.get_result(message)))
            thread.start()
            thread.join()

    broker.add_middleware(Tells())

    @dramatiq.actor
    def work() -> int:
        return 42

    message = work.send()
    run_until_done(broker)
    assert told == [42]
    assert backend.get_result(message) == 42


@pytest.mark.contract("DRE-02")
def test_a_result_is_there_before_the_barrier_falls(broker: LMDBBroker) -> None:
    """Another worker may be the last at the barrier, and call back who reads all results."""
    limits = LMDBRateLimiterBackend(broker.store)
    broker.add_middleware(GroupCallbacks(limits))
    backend = add_results(broker, broker.store)
    seen = []
    decr = limits.decr

    def look(key: str, amount: int, minimum: int, ttl: int) -> bool:
        changed = decr(key, amount, minimum, ttl)
        thread = threading.Thread(
            target=lambda: seen.append([backend.get_result(each) for each in messages[:1]])
        )
        thread.start()
        thread.join()
        return changed

    limits.decr = look  # type: ignore[method-assign]

    @dramatiq.actor
    def work(number: int) -> int:
        return number

    @dramatiq.actor
    def finish() -> None: ...

    messages = [work.message(1), work.message(2)]
    several = group(messages)
    several.add_completion_callback(finish.message())
    several.run()
    run_until_done(broker)
    assert seen == [[1], [1]]


def test_a_failure_is_kept_as_the_result(broker: LMDBBroker) -> None:
    backend = add_results(broker, broker.store)

    @dramatiq.actor(max_retries=0)
    def fails() -> None:
        raise RuntimeError("no")

    message = fails.send()
    run_until_done(broker)
    with pytest.raises(ResultFailure, match="no"):
        backend.get_result(message)
    (dead,) = broker.queue("default").jobs("failed")
    assert dead.errors[-1].message == "RuntimeError: no"
    assert "raise RuntimeError" in (dead.errors[-1].traceback or "")
