"""Programs of test_async_exceptions: exceptions and nested operations at random points."""

from __future__ import annotations

import ctypes
import gc
import itertools
import random
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from equeue_core import Queue, QueueEmpty, Record

from ._ledger import Journal
from ._talk import called, hear, say
from ._work import MANY, Worker

# A prototype of its own: to set argtypes of the one that all share would spoil Dramatiq's call of it.
_set_async_exc = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


AGAIN = 0.05
"""Seconds after which the timer rings again by itself: an exception can keep a handler from setting it."""


class Boom(Exception):
    """As the time limit of a job."""


class Halt(BaseException):
    """As Ctrl-C."""


class Target:
    """A worker in one thread, and the switch that says whether it can be hit now."""

    def __init__(self, queue: Queue[Any], journal: Journal, name: str) -> None:
        self.worker = Worker(queue, journal, name)
        self.armed = False
        self.caught = 0
        self.stop = False

    def run(self) -> None:
        while not self.stop:
            try:
                self._work()
            except (Boom, Halt):
                self.caught += 1

    def _work(self) -> None:
        # Each hit disarms, so the handler in run() is never hit itself.
        while not self.stop:
            self.armed = True
            self.worker.step()


def _open(path: str) -> Queue[Any]:
    return Queue(path, max_retries=MANY, vacuum_interval=86400)


def signals(path: str, log: str, hits: str, longest_us: str) -> None:
    """SIGALRM after random microseconds; its handler raises in whatever the main thread does."""
    queue, rnd, fired = _open(path), random.Random(1), 0
    held = _hold(queue)
    target = Target(queue, Journal(log), "signals")

    def arm() -> None:
        signal.setitimer(signal.ITIMER_REAL, rnd.uniform(10, int(longest_us)) / 1e6, AGAIN)

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal fired
        if fired >= int(hits):
            signal.setitimer(signal.ITIMER_REAL, 0)
            target.stop = True
            return
        arm()
        if target.armed:
            target.armed = False
            fired += 1
            raise rnd.choice([Boom, Halt])("hit")

    signal.signal(signal.SIGALRM, handler)
    arm()
    target.run()
    held.ack()
    _report(queue, fired, target.caught)


def async_exceptions(path: str, log: str, hits: str, longest_us: str) -> None:
    """The main thread throws exceptions into three working threads."""
    queue, rnd, fired = _open(path), random.Random(2), 0
    held = _hold(queue)
    journal = Journal(log)
    targets = [Target(queue, journal, f"thread.{number}") for number in range(3)]
    threads = [threading.Thread(target=target.run, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    # Threads take turns often, or each hit would wait for its turn.
    sys.setswitchinterval(1e-4)
    while fired < int(hits):
        time.sleep(rnd.uniform(10, int(longest_us)) / 1e6)
        index = rnd.randrange(len(targets))
        if targets[index].armed:
            targets[index].armed = False
            _set_async_exc(threads[index].ident or 0, rnd.choice([Boom, Halt]))
            fired += 1
        assert all(thread.is_alive() for thread in threads), "a thread ended by an error"
    # An exception may still be on its way; it has arrived where the thread has begun another step.
    while not all(target.armed for target in targets):
        time.sleep(0.001)
    for target in targets:
        target.stop = True
    for thread in threads:
        thread.join()
    held.ack()
    _report(queue, fired, sum(target.caught for target in targets))


def _hold(queue: Queue[Any]) -> Record[Any]:
    """A record of another queue that must stay ours through all of it."""
    other = queue.store.queue("held", max_retries=MANY)
    other.put("held")
    return other.get(10)


def _report(queue: Queue[Any], fired: int, caught: int) -> None:
    """Say what happened, then stay alive: what is left must be there for others all the same."""
    gc.collect()
    queue.recover()
    say(fired, caught, queue.stats()["running"])
    hear()


def nested(path: str, log: str, runs: str, longest_us: str, threads: str) -> None:
    """Signal handlers that use the queue inside whatever the main thread does with it."""
    queue, journal, rnd = _open(path), Journal(log), random.Random(3)
    outer, inner = Worker(queue, journal, "outer"), Worker(queue, journal, "inner")
    count, depth = itertools.count(1), 0
    done = 0

    def arm() -> None:
        signal.setitimer(signal.ITIMER_REAL, rnd.uniform(10, int(longest_us)) / 1e6)

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal done, depth
        done = next(count)
        depth += 1
        if depth == 1:
            arm()  # the handler may itself be interrupted, once
        inner.step()
        depth -= 1
        if depth == 0:
            arm()

    others = [Target(queue, journal, f"other.{number}") for number in range(int(threads))]
    running = [threading.Thread(target=other.run, daemon=True) for other in others]
    for thread in running:
        thread.start()
    signal.signal(signal.SIGALRM, handler)
    arm()
    while done < int(runs):
        outer.step()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for other in others:
        other.stop = True
    for thread in running:
        thread.join()
    _report(queue, done, 0)


def handler_while_opening(path: str) -> None:
    """A handler uses the store in the middle of the operation that opens it."""
    queue = Queue(path)

    def handler(number: int, frame: FrameType | None) -> None:
        say("in the handler")
        queue.put("by the handler")

    signal.signal(signal.SIGUSR2, handler)
    say("opening")
    queue.put("by the program")
    say(queue.stats()["pending"])


def probe(path: str) -> None:
    """Another process that goes on with its own work; says how often, and the longest it took."""
    queue = Queue(path, vacuum_interval=0.001).store.queue("probe", vacuum_interval=0.001)
    rounds, longest = 0, 0.0
    say("ready")
    while not called():
        start = time.monotonic()
        queue.put("probe")
        try:
            queue.get(10).ack()
        except QueueEmpty:
            raise AssertionError("the job that was put was not there") from None
        longest = max(longest, time.monotonic() - start)
        rounds += 1
        time.sleep(0.002)
    say(rounds, longest)
