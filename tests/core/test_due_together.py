"""Several jobs become due at the same moment: each wakes a consumer of its own."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from equeue_core import Queue, _consumer
from tests.contract.helpers import WATCHDOG, wait_until


@pytest.mark.contract("HND-11")
def test_jobs_due_at_once_wake_a_consumer_each(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever is not woken would find its job only at the backstop.
    monkeypatch.setattr(_consumer, "BACKSTOP", 10 * WATCHDOG)
    done: list[str] = []

    def consume() -> None:
        record = queue.get()
        done.append(record.payload)
        record.ack()

    with Queue(store_path, sync="off") as queue:
        queue.stats()
        consumers = [threading.Thread(target=consume) for _ in range(4)]
        for consumer in consumers:
            consumer.start()
        wait_until(lambda: len(queue._waiters) == 4, "all to wait")
        queue.put_many(list("abcd"), run_at=time.time() + 0.2)
        for consumer in consumers:
            consumer.join(WATCHDOG)
        assert sorted(done) == list("abcd")
