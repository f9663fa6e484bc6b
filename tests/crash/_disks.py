"""Program of test_full: threads that put and threads that complete, on a full disk."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable

from equeue_core import DiskFull, Queue, QueueEmpty

from ._talk import say


def put_beside_ack(path: str) -> None:
    """Two threads put until nothing is left to do for two that take and ack."""
    queue = Queue(path)
    acked: list[int] = []
    refused: list[int] = []

    def take() -> None:
        while len(acked) < 1000:
            try:
                record = queue.get(0)
            except QueueEmpty:
                return
            if record.payload != "new":
                record.ack()
                acked.append(record.job_id)

    def put() -> None:
        while takers[0].is_alive() or takers[1].is_alive():
            try:
                queue.put("new", priority=1)
            except DiskFull:
                refused.append(1)

    takers = [_thread(take) for _ in range(2)]
    putters = [_thread(put) for _ in range(2)]
    for thread in (*takers, *putters):
        thread.start()
    for thread in (*takers, *putters):
        thread.join()
    say(len(acked), len(refused))


def _thread(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    return threading.Thread(target=run)
