"""A store that is closed or removed with messages in hand: no thread tries for ever to end them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import dramatiq
import pytest
from dramatiq.errors import ConnectionClosed

from equeue_core import Store
from equeue_dramatiq import LMDBBroker
from tests.contract.helpers import wait_until


def close(store: Store, broker: LMDBBroker) -> None:
    store.close()


def remove(store: Store, broker: LMDBBroker) -> None:
    shutil.rmtree(store.path)

    def noticed() -> bool:
        try:
            broker.stats("default")
        except ConnectionClosed:
            return True
        return False

    wait_until(noticed, "the removal is noticed")


@pytest.mark.parametrize("end", [close, remove])
@pytest.mark.parametrize("failed", [False, True])
def test_a_message_in_hand_is_let_go(
    store_path: Path,
    end: Callable[[Store, LMDBBroker], None],
    failed: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store(store_path, sync="off")
    broker = LMDBBroker(store)
    work = dramatiq.actor(lambda: None, actor_name="work", broker=broker)
    work.send()
    consumer = broker.consume("default", timeout=20_000)
    message = next(consumer)
    assert message is not None
    end(store, broker)
    if failed:
        consumer.nack(message)
    else:
        consumer.ack(message)
    assert "not in hand any more" in caplog.text
    with pytest.raises(ConnectionClosed):
        work.send()
    store.close()
