"""How many messages a worker claims before its threads are free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dramatiq
import pytest
from dramatiq import Worker

from equeue_dramatiq import LMDBBroker
from tests.contract.helpers import wait_until


@contextmanager
def stuck_worker(broker: LMDBBroker, threads: int, prefetch: int | None) -> Iterator[Worker]:
    """A worker whose consumers run and whose threads do not."""
    worker = Worker(broker, worker_threads=threads, worker_timeout=20)
    if prefetch is not None:
        worker.queue_prefetch = prefetch
    worker.start()
    try:
        for thread in worker.workers:
            thread.pause()
            assert thread.paused_event.wait(30)
        yield worker
    finally:
        worker.stop()


@pytest.mark.parametrize(("prefetch", "claimed"), [(None, 2), (3, 3), (1, 1)])
def test_a_worker_claims_what_its_prefetch_says_if_it_was_set(
    store_path: Path, prefetch: int | None, claimed: int
) -> None:
    broker = LMDBBroker(store_path)
    work = dramatiq.actor(lambda: None, broker=broker, actor_name="work")
    with stuck_worker(broker, 2, prefetch) as worker:
        for _ in range(5):
            work.send()
        wait_until(lambda: worker.work_queue.qsize() == claimed, "the worker has claimed")
        counts = broker.stats("default")
        assert (counts["running"], counts["pending"]) == (claimed, 5 - claimed)
    assert broker.stats("default")["pending"] == 5
    broker.close()
