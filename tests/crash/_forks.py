"""Programs of test_fork: processes that fork while they use the store."""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any

from equeue_core import ClaimLost, Queue, QueueEmpty, Store

from ._ledger import Journal
from ._talk import hear, say
from ._work import MANY, Worker

CHILD_SECONDS = 30


def in_child(work: Callable[[], None], *, fork: Callable[[], int] = os.fork) -> int:
    """Run `work` in a forked child that a watchdog kills; returns its process id."""
    pid = fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm(CHILD_SECONDS)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def reap(*pids: int) -> None:
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        if status:
            raise AssertionError(f"a child ended with status {status}")


def open_queue(path: str, **options: Any) -> Queue[Any]:
    return Queue(path, max_retries=MANY, vacuum_interval=86400, **options)


def storm(path: str, log: str, forks: str) -> None:
    """Fork again and again while four threads work and a fifth waits for a job."""
    queue, journal = open_queue(path), Journal(log)
    stopping = threading.Event()
    workers = [Worker(queue, journal, f"parent.{number}") for number in range(4)]
    threads = [threading.Thread(target=_work_until, args=(worker, stopping)) for worker in workers]
    waiting = threading.Thread(target=_wait_for_one, args=(queue.store.queue("late"),))
    for thread in (*threads, waiting):
        thread.start()

    def child(number: int) -> None:
        worker = Worker(queue, journal, f"child.{number}")
        for _ in range(2):
            worker.put()
            worker.put_many()
            worker.take(1)

    for number in range(int(forks)):
        reap(in_child(lambda: child(number)))  # noqa: B023 - it runs before the next turn
    stopping.set()
    queue.store.queue("late").put("at last")
    for thread in (*threads, waiting):
        thread.join()
    Worker(queue, journal, "end").drain()
    say("done")


def _work_until(worker: Worker, stopping: threading.Event) -> None:
    try:
        while not stopping.is_set():
            worker.step()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _wait_for_one(queue: Queue[Any]) -> None:
    queue.get(CHILD_SECONDS * 10).ack()


def start_method(path: str, log: str, method: str) -> None:
    """multiprocessing, after the parent has used the queue and while it holds a job."""
    queue = open_queue(path)
    queue.put("held")
    held = queue.get(10)
    context: Any = multiprocessing.get_context(method)
    children = [context.Process(target=mp_child, args=(queue, log, n)) for n in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        if child.exitcode:
            raise AssertionError(f"a {method} child ended with status {child.exitcode}")
    held.ack()
    say("done")


def mp_child(queue: Queue[Any], log: str, number: int) -> None:
    """The child has its parent's very object (fork), or a copy that was pickled."""
    worker = Worker(queue, Journal(log), f"mp.{number}")
    for _ in range(20):
        worker.put()
        worker.take(1)


def preload(path: str, log: str) -> None:
    """As `gunicorn --preload`: the master uses the queue, forks, and replaces those that die."""
    queue, journal = open_queue(path), Journal(log)
    queue.put_many(["held", "plain"])
    held = queue.get(10)
    queue.get(10).ack()

    def serve(number: int) -> None:
        threads = [
            threading.Thread(target=_requests, args=(queue, journal, f"{number}.{thread}"))
            for thread in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    pids = [in_child(lambda n=n: serve(n)) for n in range(4)]  # type: ignore[misc]
    killed = pids.pop()
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    pids.append(in_child(lambda: serve(5)))
    reap(*pids)
    Worker(queue, journal, "master").put()
    held.ack()
    Worker(queue, journal, "end").drain()
    say("done")


def _requests(queue: Queue[Any], journal: Journal, name: str) -> None:
    worker = Worker(queue, journal, name)
    for _ in range(50):
        worker.step()


def inherit(path: str, way: str) -> None:
    """A child tries to use its parent's record, drops it, and ends in one of the ways."""
    queue = open_queue(path)
    queue.put("work")
    records = [queue.get(10)]

    def child() -> None:
        refused = []
        for verb in ("ack", "nack", "fail", "release"):
            try:
                getattr(records[0], verb)()
            except ClaimLost:
                refused.append(verb)
        say(" ".join(refused))
        records.clear()
        gc.collect()
        queue.put("from the child")
        queue.recover()
        if way == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "close":
            queue.close()
        if way == "exit":
            sys.exit()

    pid = os.fork()
    if not pid:
        signal.alarm(CHILD_SECONDS)
        child()
        os._exit(0)
    os.waitpid(pid, 0)
    say(queue.job(1).state.value, queue.job(1).attempts)
    hear()  # the test looks from outside
    queue.put("the parent goes on")
    records[0].ack()
    say(queue.job(1).state.value)


def generations(path: str) -> None:
    """Parent, child and grandchild share one Queue object, each waiting for the next one's job."""
    queue = open_queue(path)
    queue.put("first")
    queue.get(10).ack()

    def grandchild() -> None:
        queue.put("from the grandchild", priority=2)

    def child() -> None:
        pid = in_child(grandchild)
        record = queue.get(20)
        assert record.payload == "from the grandchild"
        record.ack()
        reap(pid)
        queue.put("from the child")

    pid = in_child(child)
    reap(pid)
    record = queue.get(20)
    assert record.payload == "from the child"
    record.ack()
    say(queue.stats()["done"])


def daemonize(path: str) -> None:
    """The store is opened, then the process forks twice and its ancestors leave."""
    queue = open_queue(path)
    queue.put("before")
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.alarm(CHILD_SECONDS)
    record = queue.get(10)
    record.ack()
    queue.put("after")
    say(record.payload)


def fork_in_c(path: str) -> None:
    """A fork that Python knows nothing of runs no hooks."""
    queue = open_queue(path)
    queue.put("held")
    held = queue.get(10)

    def child() -> None:
        queue.put("from the child")
        queue.get(10).ack()

    reap(in_child(child, fork=ctypes.PyDLL(None).fork))
    assert queue.job(held.job_id).attempts == 1
    held.ack()
    queue.put("the parent goes on")
    queue.get(10).ack()
    say(queue.stats()["done"])


def fork_while_waiting(path: str) -> None:
    """A thread waits in get() while the main thread forks children that put and wait themselves."""
    queue = open_queue(path)
    got: list[Any] = []

    def wait() -> None:
        while len(got) < 20:
            record = queue.get(20)
            got.append(record.payload)
            record.ack()

    waiting = threading.Thread(target=wait)
    waiting.start()

    def child(number: int) -> None:
        queue.put(number)
        try:
            queue.store.queue("empty").get(0.01)
        except QueueEmpty:
            return

    for number in range(20):
        reap(in_child(lambda: child(number)))  # noqa: B023 - it runs before the next turn
        time.sleep(0)
    waiting.join()
    say(json.dumps(sorted(got)))


def fork_while_opening(path: str) -> None:
    """The main thread forks when another one has just begun to open the store."""
    other = open_queue(f"{path}.other")  # its hook runs in the middle of the engine's
    other.stats()
    queue = open_queue(path)
    opening = threading.Thread(target=queue.put, args=("by the thread",))
    environment = other._environment
    before_fork = environment.before_fork

    def begin() -> None:
        opening.start()
        while not _is_in(opening, Store._open.__code__):
            time.sleep(0.001)
        before_fork()

    environment.before_fork = begin  # type: ignore[method-assign]
    reap(in_child(lambda: say(queue.put("by the child") > 0)))
    opening.join()
    say(queue.stats()["pending"])


def _is_in(thread: threading.Thread, code: CodeType) -> bool:
    """Whether the thread is in a call of this function."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None
