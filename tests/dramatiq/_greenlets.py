"""Programs of test_gevent: this module patches the standard library, so import it in a process of its own."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from contextlib import suppress  # noqa: E402
from typing import Any  # noqa: E402

import dramatiq  # noqa: E402
import gevent  # noqa: E402
import greenlet  # noqa: E402
from dramatiq import Worker  # noqa: E402
from dramatiq.results import Results  # noqa: E402

from equeue_core import Queue, QueueEmpty, Store  # noqa: E402
from equeue_dramatiq import LMDBBroker, LMDBResultBackend  # noqa: E402

WATCHDOG = 60


def longest_pause(work: Callable[[], Any]) -> float:
    """Seconds that `work` kept another greenlet from its turn, at most."""
    longest = 0.0

    def tick() -> None:
        nonlocal longest
        last = time.monotonic()
        while True:
            gevent.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now

    ticker = gevent.spawn(tick)
    gevent.sleep(0)
    work()
    gevent.sleep(0.01)
    ticker.kill()
    return longest


def waits(path: str) -> None:
    """All kinds of waits at once, and how long they kept another greenlet from going on."""
    queue = Queue(path)
    others = queue.store.queue("others")
    delayed = queue.store.queue("delayed")
    delayed.put("later", delay=1.2)
    job_id = others.put("work")
    record = others.get()

    def wait_in_vain() -> None:
        with suppress(QueueEmpty):
            queue.store.queue("empty").get(timeout=1.2)

    kinds: list[Callable[[], object]] = [
        wait_in_vain,
        lambda: queue.get(timeout=WATCHDOG).ack(),
        lambda: delayed.get(timeout=WATCHDOG).ack(),
        lambda: others.result(job_id, timeout=WATCHDOG),
        lambda: others.join(timeout=WATCHDOG),
    ]

    def wait() -> None:
        waiting = [gevent.spawn(kind) for kind in kinds]
        gevent.spawn_later(1.2, queue.put, "work")
        gevent.spawn_later(1.2, record.ack, "done")
        gevent.joinall(waiting, raise_error=True)

    print(longest_pause(wait))


def transactions(path: str) -> None:
    """Busy greenlets, and other processes that die: says how often the hub was left to others while a
    transaction was open.
    """
    switches = [0, 0]
    queue = Queue(path, sync=sys.argv[3], max_retries=1000)
    queue.stats()
    environment = queue._environment

    def note(event: str, arguments: object) -> None:
        switches[bool(environment._txns)] += 1

    greenlet.settrace(note)

    def work(number: int) -> None:
        for _ in range(60):
            queue.put(number)
            queue.get(timeout=WATCHDOG).ack()
            gevent.sleep(0.001)

    def die() -> None:
        for _ in range(10):
            pid = os.fork()
            if not pid:
                queue.put("of one who dies")
                queue.get()
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(pid, 0)

    gevent.joinall([gevent.spawn(work, number) for number in range(5)] + [gevent.spawn(die)])
    queue.recover()
    while queue.qsize():
        queue.get().ack()
    greenlet.settrace(None)
    assert queue.stats()["running"] == 0
    assert queue.store.check().ok
    print(*switches)


def worker(path: str) -> None:
    """A worker with results, delays and a time limit; says what came of the messages."""
    store = Store(path, sync="off")
    broker = LMDBBroker(store)
    broker.add_middleware(Results(backend=LMDBResultBackend(store), store_results=True))
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    limited: list[BaseException] = []

    @dramatiq.actor
    def add(x: int, y: int) -> int:
        gevent.sleep(0.01)
        return x + y

    @dramatiq.actor(time_limit=200, max_retries=0)
    def too_long() -> None:
        try:
            gevent.sleep(WATCHDOG)
        except BaseException as error:
            limited.append(error)
            raise

    running = Worker(broker, worker_threads=8, worker_timeout=1200)
    running.start()
    messages = [add.send(number, 1) for number in range(100)]
    print(sum(each.get_result(block=True, timeout=WATCHDOG * 1000) for each in messages))
    began = time.monotonic()
    add.send_with_options(args=(1, 2), delay=300).get_result(block=True, timeout=WATCHDOG * 1000)
    print(time.monotonic() - began)
    too_long.send()
    broker.join("default", timeout=WATCHDOG * 1000)
    print(*[type(error).__name__ for error in limited])
    print(longest_pause(lambda: gevent.sleep(1.3)))
    running.stop()
    broker.close()
    store.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
