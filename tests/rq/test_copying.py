"""The script of docs/how-to/rq.md that copies what RQ has in a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import rq
from redis import Redis
from rq import Retry, SimpleWorker

from equeue_rq import LMDBRedis
from tests.docs import _pages

pytestmark = pytest.mark.once


@pytest.fixture
def copy() -> Callable[[Redis, Redis], None]:
    """The page's function."""
    page = _pages.DOCS / "how-to" / "rq.md"
    (text,) = (block.text for block in _pages.blocks(page) if block.title == "copy_rq.py")
    names: dict[str, Any] = {"__name__": "copy_rq"}
    exec(text, names)
    function: Callable[[Redis, Redis], None] = names["copy"]
    return function


@pytest.fixture
def server(redis_port: int) -> Iterator[Redis]:
    """A client of a server, which is emptied afterwards."""
    with Redis("127.0.0.1", redis_port, db=7) as client:
        yield client
        client.flushdb()


@pytest.fixture
def store(store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path, sync="off") as client:
        yield client


def work(connection: Redis) -> None:
    queue = rq.Queue(connection=connection)
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="CRITICAL")


def result_of(queue: rq.Queue, job: rq.job.Job) -> Any:
    found = queue.fetch_job(job.id)
    assert found is not None
    return found.return_value()


def test_all_that_rq_has_is_copied(
    copy: Callable[[Redis, Redis], None], server: Redis, store: LMDBRedis
) -> None:
    old = rq.Queue(connection=server)
    finished = old.enqueue("operator.mul", 2, 3)
    failed = old.enqueue("operator.mul", retry=Retry(max=1, interval=3600))
    broken = old.enqueue("operator.mul")
    work(server)
    waiting = old.enqueue("operator.mul", 4, 5)
    dependent = old.enqueue("operator.mul", 6, 7, depends_on=waiting)
    scheduled = old.enqueue_in(timedelta(hours=1), "operator.mul", 8, 9)

    copy(server, store)
    copy(server, store)

    new = rq.Queue(connection=store)
    assert new.job_ids == [waiting.id]
    assert new.finished_job_registry.get_job_ids() == [finished.id]
    assert new.failed_job_registry.get_job_ids() == [broken.id]
    assert new.deferred_job_registry.get_job_ids() == [dependent.id]
    assert sorted(new.scheduled_job_registry.get_job_ids()) == sorted([scheduled.id, failed.id])
    assert result_of(new, finished) == 6
    assert 0 < store.ttl(finished.key) <= 500
    work(store)
    assert [result_of(new, job) for job in (waiting, dependent)] == [20, 42]
    assert old.job_ids == [waiting.id]
