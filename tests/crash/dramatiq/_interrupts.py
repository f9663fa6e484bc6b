"""Program of test_interrupts: exceptions thrown into worker threads wherever they are with a message."""

from __future__ import annotations

import contextlib
import gc
import logging
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dramatiq.worker
from dramatiq import Broker, Middleware, Worker
from dramatiq.middleware import AgeLimit
from dramatiq.middleware.shutdown import Shutdown
from dramatiq.middleware.threading import Interrupt, raise_thread_exception
from dramatiq.middleware.time_limit import TimeLimitExceeded

from .._talk import hear, say
from ._application import Application

THREADS = 16
KEPT = 10**9
"""Milliseconds for which done messages are kept."""


class Target(dramatiq.worker.WorkerThread):
    """A worker thread that can be hit from its message's beginning to its end.

    It ends when an exception gets out, as Dramatiq's do.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lock = threading.RLock()
        self.armed = False
        self.waits_for_hit = False
        self.ended_by_hit = False

    def run(self) -> None:
        try:
            super().run()
        except Interrupt:
            self.armed = False
            self.ended_by_hit = True

    def process_message(self, message: Any) -> None:
        self.armed = True
        super().process_message(message)

    def disarm(self) -> None:
        """A hit that was sent arrives before this returns."""
        try:
            self.lock.acquire()
            self.armed = False
        finally:
            with contextlib.suppress(RuntimeError):
                self.lock.release()
        while self.waits_for_hit:
            time.sleep(0)

    def hit(self, kind: type[Interrupt]) -> bool:
        """Throw an exception into the thread, unless it is between two messages."""
        with self.lock:
            if not self.armed:
                return False
            self.armed = False
            self.waits_for_hit = True
            raise_thread_exception(self.ident, kind)
            return True


class Hit:
    """Tells that it has arrived: an exception is made where it is raised."""

    def __init__(self) -> None:
        thread = threading.current_thread()
        assert isinstance(thread, Target)
        thread.waits_for_hit = False


class LimitHit(Hit, TimeLimitExceeded):
    pass


class ShutdownHit(Hit, Shutdown):
    pass


class AbortHit(Hit, Interrupt):
    """As that of dramatiq-abort."""


class Disarms(Middleware):
    """The last to be told of an end: what follows is in Dramatiq's own hands."""

    def after_ack(self, broker: Broker, message: Any) -> None:
        thread = threading.current_thread()
        if isinstance(thread, Target):
            thread.disarm()

    after_nack = after_ack


class Bombardment:
    """Workers on an application, one after the other: each until its threads have ended."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._random = random.Random(4)
        self._worker = self._start()
        self.sent = 0
        self.thrown = 0
        self.ended_threads = 0

    def _start(self) -> Worker:
        worker = Worker(self._application.broker, worker_threads=THREADS, worker_timeout=5)
        worker.start()
        return worker

    def stop(self) -> None:
        self._worker.stop()
        self.ended_threads += sum(thread.ended_by_hit for thread in self._worker.workers)

    def throw(self, hits: int, longest: float) -> None:
        while self.thrown < hits:
            self._feed()
            time.sleep(self._random.uniform(1e-5, longest))
            living = [thread for thread in self._worker.workers if thread.is_alive()]
            if living:
                kind = self._random.choice([LimitHit, ShutdownHit, AbortHit])
                self.thrown += self._random.choice(living).hit(kind)
            else:
                self.stop()
                self._worker = self._start()

    def _feed(self) -> None:
        if self._application.broker.stats("default")["pending"] > 20:
            return
        messages = []
        for _ in range(100):
            actor = self._random.choice(["mark", "fails_once"])
            messages.append(self._application.message(actor, f"{actor}-{self.sent}"))
            self.sent += 1
        self._application.broker.enqueue_many(messages)


def serve(directory: str, sync: str, hits: str, longest_us: str) -> None:
    """Throw so many exceptions while messages are sent and run; say what came of it."""
    logging.disable(logging.CRITICAL)  # thousands of tracebacks
    sys.setswitchinterval(1e-4)  # or each hit would wait for its turn
    options = {"sync": sync, "done_message_ttl": KEPT, "delivery_limit": 10**6}
    application = Application(Path(directory), **options)
    application.broker.add_middleware(Disarms(), before=AgeLimit)
    dramatiq.worker.WorkerThread = Target
    bombardment = Bombardment(application)
    bombardment.throw(int(hits), int(longest_us) / 1e6)
    bombardment.stop()
    gc.collect()
    say(bombardment.thrown, bombardment.ended_threads, bombardment.sent)
    say(application.broker.stats("default")["running"])
    hear()  # what is left must be there for others all the same
