"""RQ's classes on a path: `equeue_rq.Queue`, `Worker` and the others."""

from __future__ import annotations

import gc
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
import redis
import rq
import rq.worker
import rq.worker_pool

import equeue_rq
from equeue_rq import _burial as burial
from equeue_rq import _workers
from equeue_rq._lives import DIRECTORY

WORKERS: list[Any] = [equeue_rq.Worker, equeue_rq.SimpleWorker]
if hasattr(rq.worker, "SpawnWorker"):  # since RQ 2.2
    WORKERS.append(equeue_rq.SpawnWorker)


@pytest.fixture
def path(store_path: Path) -> str:
    """The directory of a store that is not flushed."""
    with equeue_rq.LMDBRedis(store_path, sync="off") as connection:
        connection.ping()
    return str(store_path)


def run(worker: rq.SimpleWorker) -> bool:
    """Whether there was anything to do."""
    return worker.work(burst=True, logging_level="WARNING")


# Paths


def test_the_same_path_is_the_same_connection(path: str) -> None:
    connection = equeue_rq.connect(path)
    assert equeue_rq.connect(path) is connection
    assert equeue_rq.Queue("one", path).connection is connection
    assert equeue_rq.Queue("two", Path(path)).connection is connection
    assert equeue_rq.connect(os.path.relpath(path)) is connection
    assert equeue_rq.connect(f"lmdb://{path}") is connection
    assert equeue_rq.connect(path, db=1) is not connection
    assert equeue_rq.connect(path, decode_responses=True) is not connection


def test_a_connection_that_nobody_uses_is_not_kept(path: str) -> None:
    pool = equeue_rq.connect(path).connection_pool
    gc.collect()
    assert equeue_rq.connect(path).connection_pool is not pool


def test_what_is_no_path_is_left_alone(path: str) -> None:
    connection = equeue_rq.LMDBRedis(path)
    assert equeue_rq.Queue("default", connection).connection is connection
    assert equeue_rq.Queue("default", connection=connection).connection is connection
    assert equeue_rq.Worker(["default"], connection=connection).connection is connection


@pytest.mark.contract("RQW-01")
def test_a_queue_takes_a_path(path: str) -> None:
    queue = equeue_rq.Queue("default", path)
    job = queue.enqueue("math.hypot", 3, 4)
    assert isinstance(job, equeue_rq.Job)
    assert [found.name for found in equeue_rq.Queue.all(path)] == ["default"]
    assert equeue_rq.Queue.all(connection=path) == [queue]
    assert equeue_rq.Queue.from_queue_key("rq:queue:default", path) == queue
    taken = equeue_rq.Queue.dequeue_any([queue], None, path)
    assert taken is not None
    assert taken[0].id == job.id


@pytest.mark.contract("RQW-01")
def test_a_job_takes_a_path(path: str) -> None:
    job = equeue_rq.Job.create("math.hypot", (3, 4), connection=path)
    assert job.connection is equeue_rq.connect(path)
    job.save()
    assert equeue_rq.Job.exists(job.id, path)
    assert equeue_rq.Job.fetch(job.id, path).args == (3, 4)
    assert equeue_rq.Job.fetch(job.id, connection=path).func_name == "math.hypot"
    assert [found and found.id for found in equeue_rq.Job.fetch_many([job.id, "x"], path)] == [
        job.id,
        None,
    ]


@pytest.mark.contract("RQW-01")
@pytest.mark.parametrize("worker_class", WORKERS)
def test_a_worker_takes_a_path(path: str, worker_class: Any) -> None:
    job = equeue_rq.Queue("default", path).enqueue("math.hypot", 3, 4)
    worker = worker_class(["other", "default"], connection=path)
    assert run(worker)
    assert job.return_value() == 5
    assert worker_class.all(path) == []
    assert worker_class.count(connection=path) == 0
    assert os.listdir(os.path.join(path, DIRECTORY)) == []


def test_a_worker_takes_the_queues_of_rq(path: str) -> None:
    queue = rq.Queue("default", connection=equeue_rq.connect(path))
    job = queue.enqueue("math.hypot", 3, 4)
    assert run(equeue_rq.SimpleWorker([queue], connection=queue.connection))
    assert job.return_value() == 5


def test_a_class_of_queues_of_ones_own_is_kept(path: str) -> None:
    class Other(rq.Queue):
        redis_queue_namespace_prefix = "other:queue:"

    queue = Other("default", connection=equeue_rq.connect(path))
    job = queue.enqueue("math.hypot", 3, 4)
    worker = equeue_rq.SimpleWorker([queue], connection=queue.connection, queue_class=Other)
    assert run(worker)
    assert worker.queue_class is Other
    assert job.return_value() == 5
    assert not queue.connection.exists("other:queue:default:intermediate")


@pytest.mark.contract("RQW-01")
def test_a_pool_takes_a_path(path: str) -> None:
    job = equeue_rq.Queue("default", path).enqueue("math.hypot", 3, 4)
    pool = equeue_rq.WorkerPool(["default"], path, num_workers=2)
    assert pool.worker_class is equeue_rq.Worker
    assert isinstance(pool, rq.worker_pool.WorkerPool)
    pool.start(burst=True, logging_level="WARNING")
    assert job.return_value() == 5


def test_classes_of_workers_can_be_sent_to_other_processes() -> None:
    for worker_class in (*WORKERS, equeue_rq.Queue, equeue_rq.Job):
        assert pickle.loads(pickle.dumps(worker_class)) is worker_class


def test_documentation_is_that_of_rq() -> None:
    assert equeue_rq.Queue.all.__doc__ == rq.Queue.all.__doc__


# Elsewhere than on a store


def test_a_worker_on_a_server_is_rqs_own(redis_port: int) -> None:
    with redis.Redis("127.0.0.1", redis_port) as connection:
        connection.flushall()
        job = equeue_rq.Queue("default", connection).enqueue("math.hypot", 3, 4)
        worker = equeue_rq.SimpleWorker(["default"], connection=connection)
        assert run(worker)
        assert job.return_value() == 5
        assert worker._life is None
        connection.flushall()


def test_a_worker_knows_its_store_by_any_connection(path: str) -> None:
    connection = redis.Redis(
        connection_pool=redis.ConnectionPool(
            connection_class=equeue_rq.LMDBConnection, path=path, db=3
        )
    )
    assert _workers._store_of(connection) == (path, 3)


# Lives


def test_a_name_can_be_used_again_after_an_end(path: str) -> None:
    for _ in range(2):
        worker = equeue_rq.SimpleWorker(["default"], connection=path, name="same")
        run(worker)


def test_a_name_is_taken_as_long_as_its_worker_lives(path: str) -> None:
    first = equeue_rq.SimpleWorker(["default"], connection=path, name="same")
    first.register_birth()
    second = equeue_rq.SimpleWorker(["default"], connection=path, name="same")
    with pytest.raises(ValueError, match="active worker named 'same'"):
        second.register_birth()
    first.register_death()
    second.register_birth()
    second.register_death()
    assert os.listdir(os.path.join(path, DIRECTORY)) == []


def expiry(job: Any) -> float:
    """When the job's execution expires, in seconds from now."""
    (member,) = job.connection.zrange(job.started_job_registry.key, 0, -1, withscores=True)
    return float(member[1]) - time.time()


@pytest.mark.contract("RQW-05")
def test_a_job_of_a_living_worker_stays_without_heartbeats(path: str) -> None:
    queue = equeue_rq.Queue("default", path)
    job = queue.enqueue("math.hypot", 3, 4)
    holder = equeue_rq.SimpleWorker([queue], connection=path)
    holder.register_birth()
    holder.dequeue_job_and_maintain_ttl(None)
    execution = holder.prepare_execution(job)
    holder.prepare_job_execution(job)
    key, member = job.started_job_registry.key, execution.composite_key
    other = equeue_rq.SimpleWorker([queue], connection=path)

    queue.connection.zadd(key, {member: time.time() + 40})  # somebody will send the next one
    burial.keep_running(other, *_workers._store_of(queue.connection))
    assert expiry(job) < 45
    queue.connection.zadd(key, {member: time.time() + 20})  # nobody has
    burial.keep_running(other, *_workers._store_of(queue.connection))
    assert expiry(job) > 60

    holder._life.end()  # as the kernel does it
    queue.connection.zadd(key, {member: time.time() + 20})
    burial.keep_running(other, *_workers._store_of(queue.connection))
    assert expiry(job) < 25
