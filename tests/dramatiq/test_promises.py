"""Promises of the broker that no shared contract has, since no other broker makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Message, Worker
from dramatiq.errors import ConnectionClosed, ConnectionFailed

from equeue_core import QueueFull, StoreAccessError
from equeue_dramatiq import LMDBBroker, LMDBRateLimiterBackend, LMDBResultBackend
from tests.contract.clock import Clock
from tests.contract.dramatiq.helpers import HOUR, Recorder, note, send, take, values_of
from tests.contract.helpers import WATCHDOG
from tests.dramatiq._commands import environment

DAY = 86_400  # seconds

CLAIM_AND_DIE = """
import os, signal, sys
from equeue_dramatiq import LMDBBroker
broker = LMDBBroker(sys.argv[1], delivery_limit=int(sys.argv[2]))
assert next(broker.consume("default")) is not None
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def broker(store_path: Path) -> LMDBBroker:
    broker = LMDBBroker(store_path, sync="off")
    broker.declare_queue("default")
    return broker


def fail_one(broker: LMDBBroker) -> None:
    """Make the next message a dead letter, as a worker does whose actor raised."""
    consumer = broker.consume("default", timeout=0)
    (message,) = take(consumer)
    try:
        raise LookupError("no such order")
    except LookupError as error:
        message.stuff_exception(error)
    consumer.nack(message)


@pytest.mark.contract("DRM-03")
def test_no_option_is_added_but_the_time_of_a_delayed_message(broker: LMDBBroker) -> None:
    plain = broker.enqueue(note("default", own=1))
    delayed = broker.enqueue(note("default"), delay=HOUR)
    assert plain.options == {"own": 1}
    assert set(delayed.options) == {"eta"}
    (got,) = take(broker.consume("default"))
    assert got.options == {"own": 1}


@pytest.mark.contract("DRM-03")
def test_after_enqueue_finds_the_message_in_the_store(broker: LMDBBroker) -> None:
    counts: list[int] = []

    class Looks(dramatiq.Middleware):
        def after_enqueue(self, broker: Any, message: Any, delay: Any) -> None:
            counts.append(broker.stats("default")["pending"])

    broker.add_middleware(Looks())
    broker.enqueue(note("default"))
    broker.enqueue_many([note("default"), note("default")])
    assert counts == [1, 3, 3]


@pytest.mark.contract("DRM-08")
def test_a_delayed_message_is_announced_when_it_is_due_under_its_plain_name(
    broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    clock.install(monkeypatch)
    recorder = Recorder()
    broker.add_middleware(recorder)
    broker.enqueue(note("default"), delay=400 * DAY * 1000)
    consumer = broker.consume("default", timeout=10)
    assert next(consumer) is None
    assert recorder.all("before_delay_message") == []
    clock.advance(401 * DAY)
    (message,) = take(consumer)
    (told,) = recorder.all("before_delay_message")
    assert told.subject is message
    assert message.queue_name == "default"
    assert "eta" not in message.options


@pytest.mark.contract("DRM-05")
def test_a_dead_letter_has_its_reason_and_its_time(broker: LMDBBroker) -> None:
    send(broker, "default", ["lost"])
    fail_one(broker)
    (letter,) = broker.queue("default").jobs("failed")
    assert Message.decode(letter.payload).args == ("lost",)
    assert letter.finished_at is not None
    (error,) = letter.errors
    assert error.message == "LookupError: no such order"
    assert traceback.format_exception_only(LookupError("no such order"))[0] in error.traceback


@pytest.mark.contract("DRM-05")
def test_dead_letters_are_requeued_and_purged(broker: LMDBBroker) -> None:
    send(broker, "default", ["a", "b"])
    fail_one(broker)
    fail_one(broker)
    queue = broker.queue("default")
    first, _ = queue.jobs("failed")
    queue.requeue(first.job_id)
    assert broker.get_queue_message_counts("default") == (1, 0, 1)
    assert queue.purge("failed") == 1
    assert values_of(take(broker.consume("default"))) == ["a"]


@pytest.mark.contract("DRM-05")
def test_dead_letters_are_kept_for_their_time(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    clock.install(monkeypatch)
    broker = LMDBBroker(store_path, sync="off", dead_message_ttl=2 * DAY * 1000)
    send(broker, "default", ["lost"])
    fail_one(broker)
    clock.advance(2 * DAY - 60)
    assert broker.queue("default").vacuum() == 0
    clock.advance(120)
    assert broker.queue("default").vacuum() == 1
    assert broker.get_queue_message_counts("default") == (0, 0, 0)


@pytest.mark.contract("DRM-11")
def test_what_waits_can_be_cancelled(broker: LMDBBroker) -> None:
    ready = broker.enqueue(note("default", "ready"))
    delayed = broker.enqueue(note("default", "delayed"), delay=HOUR)
    send(broker, "default", ["stays"])
    assert broker.cancel(ready.message_id)
    assert broker.cancel(delayed.message_id, "default")
    assert not broker.cancel(ready.message_id)
    assert broker.get_queue_message_counts("default") == (1, 0, 0)
    assert values_of(take(broker.consume("default"))) == ["stays"]


@pytest.mark.contract("DRM-11")
def test_one_of_many_is_found(broker: LMDBBroker) -> None:
    messages = [note("default", number) for number in range(1100)]
    broker.enqueue_many(messages)
    broker.enqueue_many([note("default"), note("other")], delay=HOUR)
    assert broker.cancel(messages[-1].message_id)
    assert broker.get_queue_message_counts("default") == (1099, 1, 0)


@pytest.mark.contract("DRM-11")
def test_what_is_in_hand_is_not_cancelled(broker: LMDBBroker) -> None:
    sent = broker.enqueue(note("default"))
    broker.declare_queue("other")
    consumer = broker.consume("default")
    (message,) = take(consumer)
    assert not broker.cancel(sent.message_id)
    assert not broker.cancel(sent.message_id, "other")
    consumer.ack(message)


@pytest.mark.contract("DRM-13")
def test_a_store_that_cannot_be_opened_is_a_failed_connection(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    broker = LMDBBroker(tmp_path / "file")
    for operation in (
        lambda: broker.enqueue(note("default")),
        lambda: broker.stats("default"),
        lambda: next(broker.consume("default")),
        lambda: broker.flush("default"),
        lambda: broker.join("default", timeout=1),
    ):
        with pytest.raises(ConnectionFailed) as caught:
            operation()
        assert isinstance(caught.value.__cause__, StoreAccessError)


@pytest.mark.contract("DRM-13")
def test_a_full_store_is_a_closed_connection_and_can_be_worked_off(store_path: Path) -> None:
    broker = LMDBBroker(store_path, sync="off", map_size=100_000)
    recorder = Recorder()
    broker.add_middleware(recorder)
    with pytest.raises(ConnectionClosed) as caught:
        send(broker, "default", ["x" * 1000] * 1000)
    assert isinstance(caught.value.__cause__, QueueFull)
    stored = broker.stats("default")["pending"]
    assert len(recorder.all("after_enqueue")) == stored
    consumer = broker.consume("default", prefetch=10)
    for message in take(consumer, 10):
        consumer.ack(message)
    send(broker, "default", ["x" * 1000])


@pytest.mark.contract("DRM-14")
def test_making_them_touches_no_disk(store_path: Path) -> None:
    broker = LMDBBroker(store_path)
    dramatiq.actor(print, broker=broker, actor_name="work")
    broker.declare_queue("other")
    LMDBResultBackend(store_path)
    LMDBRateLimiterBackend(store_path)
    broker.consume("default")
    broker.close()
    assert not store_path.exists()


@pytest.mark.contract("DRM-14")
def test_a_child_of_a_fork_opens_the_store_for_itself(broker: LMDBBroker) -> None:
    send(broker, "default", ["parent's"])
    (in_hand,) = take(broker.consume("default"))
    child = os.fork()
    if child == 0:
        send(broker, "default", ["child's"])
        taken = values_of(take(broker.consume("default", timeout=1000)))
        os._exit(0 if taken == ["child's"] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    broker.consume("default").ack(in_hand)
    # What the child had in hand came back when it ended.
    assert values_of(take(broker.consume("default"))) == ["child's"]


@pytest.mark.contract("DRM-15")
def test_a_message_that_cost_too_many_processes_their_lives_is_a_dead_letter(
    broker: LMDBBroker, store_path: Path, tmp_path: Path
) -> None:
    send(broker, "default", ["poison"])
    for _ in range(2):
        died = subprocess.run(
            [sys.executable, "-c", CLAIM_AND_DIE, str(store_path), "1"],
            env=environment(tmp_path),
            timeout=WATCHDOG,
        )
        assert died.returncode == -signal.SIGKILL
    assert next(broker.consume("default", timeout=0)) is None
    (letter,) = broker.queue("default").jobs("failed")
    assert [error.attempt for error in letter.errors] == [1, 2]
    assert all("died" in error.message for error in letter.errors)


@pytest.mark.contract("DRM-15")
def test_an_actor_that_raises_spends_no_delivery(store_path: Path) -> None:
    broker = LMDBBroker(store_path, sync="off", delivery_limit=0)
    ran: list[int] = []

    @dramatiq.actor(broker=broker, max_retries=3, min_backoff=1, max_backoff=1)
    def work() -> None:
        ran.append(1)
        if len(ran) < 4:
            raise LookupError("again")

    work.send()
    worker = Worker(broker, worker_timeout=20, worker_threads=1)
    worker.start()
    broker.join("default", timeout=int(WATCHDOG * 1000))
    worker.stop()
    assert len(ran) == 4
    assert broker.get_queue_message_counts("default") == (0, 0, 0)


@pytest.mark.contract("DRM-16")
def test_processed_messages_are_gone_or_kept_for_as_long_as_told(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    clock.install(monkeypatch)
    keeps, forgets = (
        LMDBBroker(store_path, sync="off", done_message_ttl=ttl) for ttl in (60_000, 0)
    )
    for broker in (keeps, forgets):
        send(broker, "default", ["work"])
        consumer = broker.consume("default")
        consumer.ack(*take(consumer))
    assert len(keeps.queue("default").jobs("done")) == 1
    clock.advance(120)
    keeps.queue("default").vacuum()
    assert keeps.queue("default").jobs("done") == []
