"""Programs of test_durability and test_power_cut: known operations, each announced by a mark."""

from __future__ import annotations

import json
import os
import random
import threading
from typing import Literal

from equeue_core import DuplicateJob, PayloadError, Queue, QueueEmpty, QueueFull
from equeue_core.storage import Space, SpaceId, key_prefix

ROUNDS = 4
ENTRY = key_prefix(SpaceId.RQ) + b"~entry"


class Marks:
    """A file of marks: a trace shows each of them as one write."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def __call__(self, text: str) -> None:
        os.write(self._fd, text.encode())


def each_verb(path: str, marks: str) -> None:
    """Every operation several times over; the first of all warms up and is not counted."""
    mark = Marks(marks)
    queue = Queue(path)
    full = Queue(path, "small", map_size=1)
    space = Space(queue.store, SpaceId.RQ)
    queue.put("warm up")
    queue.get_nowait().ack()
    _refused(QueueFull, lambda: full.put("warm up"))
    for turn in range(ROUNDS):
        mark(f"empty get {turn}")
        _refused(QueueEmpty, queue.get_nowait)
        mark(f"put {turn}")
        queue.put("work", unique="key")
        mark(f"refused put {turn}")
        _refused(DuplicateJob, lambda: queue.put("again", unique="key"))
        mark(f"put refused for its payload {turn}")
        _refused(PayloadError, lambda: queue.put(object()))
        mark(f"put into a full store {turn}")
        _refused(QueueFull, lambda: full.put("x" * 100))
        mark(f"look {turn}")
        queue.stats(), queue.jobs("pending"), queue.qsize(), queue.job(1)
        mark(f"get {turn}")
        record = queue.get_nowait()
        mark(f"nack {turn}")
        record.nack("once more")
        mark(f"get again {turn}")
        record = queue.get_nowait()
        mark(f"release {turn}")
        record.release()
        mark(f"get a third time {turn}")
        record = queue.get_nowait()
        mark(f"ack {turn}")
        record.ack()
        mark(f"put_many {turn}")
        queue.put_many(range(50))
        mark(f"get_many {turn}")
        records = queue.get_many(50)
        mark(f"ack_many {turn}")
        queue.ack_many(records)
        mark(f"delayed put {turn}")
        job_id = queue.put("later", delay=3600)
        mark(f"cancel {turn}")
        queue.cancel(job_id)
        mark(f"transaction {turn}")
        with queue.store.transaction() as tx:
            tx.put(queue, "one", delay=3600)
            tx.put(queue, "two", delay=3600)
        mark(f"entry {turn}")
        space.write(lambda txn: txn.put(ENTRY, b"here"), adds=1)
        mark(f"entry removed {turn}")
        space.write(lambda txn: txn.delete(ENTRY))
        mark(f"what adds nothing {turn}")
        space.write(lambda txn: txn.get(ENTRY), adds=1)
        mark(f"end {turn}")


def _refused(error: type[Exception], operation: object) -> None:
    try:
        operation()  # type: ignore[operator]
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")


def many_threads(path: str, marks: str) -> None:
    """Eight threads put at once."""
    mark = Marks(marks)
    queue = Queue(path)
    queue.put("warm up")
    threads = [
        threading.Thread(target=lambda: [queue.put("work") for _ in range(25)]) for _ in range(8)
    ]
    mark("puts")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mark("end")


def history(
    path: str, marks: str, sync: Literal["full", "normal"], threads: str, steps: str
) -> None:
    """Random operations; each mark says what has just returned, and for which job."""
    mark = Marks(marks)
    queue = Queue(path, sync=sync, max_retries=1000, do_vacuum=False)

    def work(number: int) -> None:
        rnd = random.Random(number)
        for step in range(int(steps)):
            if step % 3 == 0 or rnd.random() < 0.3:
                size = rnd.choice([10, 200, 3000, 9000])
                token = f"{number}.{step}." + "x" * size
                job_id = queue.put(token)
                mark(json.dumps(["put", job_id, token]))
                continue
            try:
                record = queue.get_nowait()
            except QueueEmpty:
                continue
            mark(json.dumps(["get", record.job_id]))
            if rnd.random() < 0.8:
                record.ack()
                mark(json.dumps(["ack", record.job_id]))
            else:
                record.release()
                mark(json.dumps(["release", record.job_id]))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(int(threads))]
    if len(workers) == 1:
        work(0)
        return
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
