"""What brokers and backends can be made of, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Message

from equeue_core import Store
from equeue_dramatiq import LMDBBroker, LMDBRateLimiterBackend, LMDBResultBackend

KINDS = [LMDBBroker, LMDBResultBackend, LMDBRateLimiterBackend]
every_kind = pytest.mark.parametrize("kind", KINDS)


def message(queue_name: str = "default", **options: Any) -> Message[Any]:
    return Message(queue_name=queue_name, actor_name="actor", args=(), kwargs={}, options=options)


@every_kind
def test_making_one_touches_no_disk(kind: Any, tmp_path: Path) -> None:
    kind(tmp_path / "data").close()
    assert list(tmp_path.iterdir()) == []


@every_kind
def test_the_default_is_a_directory_here(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kind().store.path == "./data"


@every_kind
def test_a_store_is_taken_as_it_is_and_left_open(kind: Any, store_path: Path) -> None:
    with Store(store_path, sync="off") as store:
        assert kind(store).store is store
        made = kind(store=store)
        assert made.store is store
        made.close()
        assert store.sync == "off"


@every_kind
@pytest.mark.parametrize(
    "options", [{"sync": "off"}, {"sync": False}, {"allow_network_fs": True}], ids=str
)
def test_a_stores_own_options_are_said_to_the_store(
    kind: Any, options: dict[str, Any], store_path: Path
) -> None:
    with Store(store_path) as store:
        with pytest.raises(ValueError, match=next(iter(options))):
            kind(store, **options)
        with pytest.raises(ValueError, match=next(iter(options))):
            kind(store=store, **options)


@every_kind
def test_not_two_stores(kind: Any, store_path: Path) -> None:
    with Store(store_path) as store, pytest.raises(ValueError, match="not both"):
        kind(store_path, store=store)


@pytest.mark.parametrize("name", ["dead_message_ttl", "done_message_ttl", "delivery_limit"])
def test_numbers_are_whole_and_not_negative(name: str, store_path: Path) -> None:
    with pytest.raises(ValueError, match=name):
        LMDBBroker(store_path, **{name: -1})
    for wrong in (1.5, "1", True):
        with pytest.raises(TypeError, match=name):
            LMDBBroker(store_path, **{name: wrong})


def test_namespaces_keep_queues_apart(store_path: Path) -> None:
    with Store(store_path, sync="off") as store:
        one, two = LMDBBroker(store), LMDBBroker(store, namespace="other")
        one.enqueue(message())
        assert one.get_queue_message_counts("default") == (1, 0, 0)
        assert two.get_queue_message_counts("default") == (0, 0, 0)
        assert store.queues() == ["dramatiq:default", "other:default"]


def test_a_closed_broker_opens_again(store_path: Path) -> None:
    broker = LMDBBroker(store_path, sync="off")
    broker.enqueue(message())
    broker.close()
    assert broker.get_queue_message_counts("default") == (1, 0, 0)
    broker.close()


def test_dead_letters_go_after_their_time(store_path: Path) -> None:
    broker = LMDBBroker(store_path, sync="off", dead_message_ttl=0)
    broker.enqueue(message())
    consumer = broker.consume("default", timeout=1000)
    claimed = next(consumer)
    assert claimed is not None
    consumer.nack(claimed)
    broker.queue("default").vacuum()
    assert broker.get_queue_message_counts("default") == (0, 0, 0)
    broker.close()


def test_processed_messages_can_be_kept(store_path: Path) -> None:
    broker = LMDBBroker(store_path, sync="off", done_message_ttl=60_000)
    sent = broker.enqueue(message())
    consumer = broker.consume("default", timeout=1000)
    claimed = next(consumer)
    assert claimed is not None
    consumer.ack(claimed)
    (done,) = broker.queue("default").jobs("done")
    assert Message.decode(done.payload).message_id == sent.message_id
    broker.close()


@pytest.mark.parametrize("encoder", [dramatiq.JSONEncoder(), dramatiq.PickleEncoder()], ids=repr)
def test_a_message_is_cancelled_by_its_id(encoder: Any, store_path: Path) -> None:
    before = dramatiq.get_encoder()
    dramatiq.set_encoder(encoder)
    try:
        broker = LMDBBroker(store_path, sync="off")
        broker.declare_queue("default")
        broker.declare_queue("other")
        ready, delayed = broker.enqueue(message()), broker.enqueue(message("other"), delay=60_000)
        left = broker.enqueue(message())
        broker.queue("default").put(b"no message at all")
        assert broker.cancel(ready.message_id)
        assert not broker.cancel(ready.message_id)
        assert not broker.cancel(delayed.message_id, "default")
        assert broker.cancel(delayed.message_id, "other")
        assert not broker.cancel("nobody's")
        with pytest.raises(TypeError, match="not Message"):
            broker.cancel(ready)  # type: ignore[arg-type]
        assert broker.get_queue_message_counts("default") == (2, 0, 0)
        assert broker.get_queue_message_counts("other") == (0, 0, 0)
        claimed = next(broker.consume("default", timeout=1000))
        assert claimed is not None
        assert claimed.message_id == left.message_id
        assert not broker.cancel(left.message_id)  # it runs
        broker.close()
    finally:
        dramatiq.set_encoder(before)
