"""RQ's queues and workers on a contender: filled, run in this process, or as ``rq worker``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks import connections, rq_jobs
from benchmarks._board import Board, Workers
from benchmarks.connections import Address

SIMPLE, FORKING, OURS = "rq.SimpleWorker", "rq.Worker", "equeue_rq.Worker"

_BATCH = 1000
_ROOT = Path(__file__).resolve().parents[2]


def queue_on(connection: Any) -> Any:
    """RQ's default queue."""
    return import_module("rq").Queue(connection=connection)


def fill(connection: Any, function: Callable[[], object], count: int) -> None:
    """Put ``count`` jobs that call the function into the queue.

    RQ makes the first; the others have its fields.
    """
    queue = queue_on(connection)
    job = queue.enqueue(function)
    fields = connection.hgetall(job.key)
    for start in range(1, count, _BATCH):
        pipeline = connection.pipeline()
        numbers = [str(uuid4()) for _ in range(min(_BATCH, count - start))]
        for number in numbers:
            pipeline.hset(type(job).key_for(number), mapping=fields)
        pipeline.rpush(queue.key, *numbers)
        pipeline.execute()


def seconds_each(
    connection: Any, worker_class: str, directory: Path, warm_up: int, count: int
) -> float:
    """Seconds for each of ``count`` jobs that a worker in this process takes off the queue.

    They call ``rq_jobs.count``, there is one more of them, and ``warm_up`` more come first. The time runs
    from the start of one job to the start of another.
    """
    board = Board(directory / "board")
    board.open_gate()
    os.environ[rq_jobs.VARIABLE] = str(board.directory)
    module, _, name = worker_class.rpartition(".")
    worker = getattr(import_module(module), name)([queue_on(connection)], connection=connection)
    worker.work(burst=True, logging_level="WARNING", max_jobs=warm_up + count + 1)
    moments = board.values()
    return (moments[warm_up + count] - moments[warm_up]) * 1e-9 / count


@contextmanager
def working(
    name: str,
    address: Address,
    directory: Path,
    *,
    processes: int = 1,
    worker_class: str = FORKING,
) -> Iterator[Workers]:
    """So many processes of ``rq worker`` on the named contender, ended on leaving."""
    board = Board(directory / "board")
    log = directory / "workers.log"
    workers = Workers("an rq worker", board, log)
    command = [sys.executable, "-m", "rq.cli", "worker", "--quiet", "--worker-class", worker_class]
    options = connections.make(name).options(address)
    try:
        with log.open("wb") as output:
            for _ in range(processes):
                process = subprocess.Popen(
                    [*command, *options],
                    cwd=_ROOT,
                    env=os.environ | {rq_jobs.VARIABLE: str(board.directory)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                workers.processes.append(process)
        yield workers
    finally:
        workers.kill()
