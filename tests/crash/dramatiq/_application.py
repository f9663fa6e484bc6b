"""The application that the worker processes run, and what they write down of it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dramatiq
from dramatiq import Message, Middleware, pipeline
from dramatiq.middleware import CurrentMessage
from dramatiq.middleware.threading import is_gevent_active
from dramatiq.results import Results

from equeue_core import State
from equeue_dramatiq import LMDBBroker, LMDBResultBackend

from .._ledger import Journal, pages
from .._procs import WATCHDOG

# Environment variables of the command.
DIRECTORY = "EQUEUE_TEST_DIRECTORY"
OPTIONS = "EQUEUE_TEST_OPTIONS"
COMMAND = "EQUEUE_TEST_COMMAND"  # its name
TEST = "EQUEUE_TEST_PROCESS"  # the test's number


def run_of(message: Any) -> str:
    """Which run of its message this is: the token, with "+1" after a failure."""
    retries = message.options.get("retries")
    return message.args[0] + (f"+{retries}" if retries else "")


class Trouble(Exception):
    """What a failing actor raises."""


class Witness(Middleware):
    """Writes down what becomes of messages. A line: kind, token, process, monotonic time, retries,
    command.

    The token is that of `run_of`.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def note(self, kind: str, token: object, retries: int = 0) -> None:
        command = os.environ.get(COMMAND, "test")
        self._journal(kind, token, os.getpid(), time.monotonic(), retries, command)

    def after_worker_boot(self, broker: Any, worker: Any) -> None:
        self.note("up", "worker")

    def before_worker_shutdown(self, broker: Any, worker: Any) -> None:
        self.note("stopping", "worker")

    def before_delay_message(self, broker: Any, message: Any) -> None:
        self.note("due", message.args[0])

    def before_process_message(self, broker: Any, message: Any) -> None:
        message.run = run_of(message)
        self.note("start", message.run, message.record.retries)

    def after_ack(self, broker: Any, message: Any) -> None:
        self.note("acked", message.run)

    def after_nack(self, broker: Any, message: Any) -> None:
        self.note("dead", message.args[0])


class Application:
    """A broker with its actors. What is to happen between processes happens in `directory`.

    Each actor's first argument is a token, which names the message.

    Parameters:
        path: of the store; the default is one in `directory`.
        options: the broker's.
    """

    def __init__(self, directory: Path, path: str | None = None, **options: Any) -> None:
        self.directory = directory
        self.journal = Journal(directory / "journal")
        self.witness = Witness(self.journal)
        self.broker = LMDBBroker(path or directory / "store", **options)
        self.results = LMDBResultBackend(path or directory / "store")
        self.broker.add_middleware(Results(backend=self.results))
        self.broker.add_middleware(CurrentMessage())
        self.broker.add_middleware(self.witness)
        for function in (self.mark, self.hold, self.nap, self.block, self.fails_once):
            self._add(function)
        self._add(self.poison)
        self._add(self.forks)
        self._add(self.lingers)
        self._add(self.mark, "urgent", priority=-10)
        self._add(self.answer, store_results=True)
        self._add(self.hold, "hold_in_other", queue_name="other")
        self._add(self.mark, "mark_in_other", queue_name="other")
        self._add(self.hold, "hold_and_fail", max_retries=1)

    def _add(self, function: Callable[..., None], name: str = "", **options: Any) -> None:
        name = name or function.__name__
        options = {"min_backoff": 1, "max_backoff": 20, **options}
        dramatiq.actor(function, actor_name=name, broker=self.broker, **options)

    def message(self, actor: str, token: object, *arguments: Any) -> Message[Any]:
        return self.broker.get_actor(actor).message(str(token), *arguments)

    def send(self, actor: str, token: object, *arguments: Any, delay: int | None = None) -> None:
        self.broker.enqueue(self.message(actor, token, *arguments), delay=delay)

    def join(self) -> None:
        """Wait until everything that was sent is done."""
        for name in self.broker.queues:
            self.broker.join(name, timeout=int(WATCHDOG * 1000))

    def done(self, queue_name: str = "default") -> list[Message[Any]]:
        """The messages that are done, if the broker keeps them."""
        jobs = pages(self.broker.queue(queue_name), State.DONE)
        return [Message.decode(job.payload) for job in jobs]

    def close(self) -> None:
        self.broker.close()
        self.results.close()
        self.journal.close()

    def send_chain(self, tokens: Iterable[str]) -> None:
        """Send a pipeline of marks, each of which sends the next."""
        mark = self.broker.get_actor("mark")
        steps = [mark.message_with_options(args=(token,), pipe_ignore=True) for token in tokens]
        pipeline(steps, broker=self.broker).run()

    # The actors

    def mark(self, token: str) -> None:
        """Leave a mark, and be done."""

    def answer(self, token: str) -> str:
        """Have a result."""
        return f"result of {token}"

    def hold(self, token: str, padding: str = "") -> None:
        """Take as long as the test keeps the queue's gate shut. The name decides what comes then."""
        message = CurrentMessage.get_current_message()
        with (self.directory / f"gate-{message.queue_name}").open() as gate:
            while is_gevent_active():  # the thread must not be blocked
                try:
                    fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.01)
            fcntl.flock(gate, fcntl.LOCK_SH)
        self.witness.note("held", token)
        if message.actor_name == "hold_and_fail" and not message.options.get("retries"):
            raise Trouble(token)

    def nap(self, token: str, seconds: float) -> None:
        """Take a known time."""
        time.sleep(seconds)
        self.witness.note("held", token)

    def block(self, token: str, seconds: float) -> None:
        """Sit in C code that never lets go of the interpreter lock."""
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
        self.witness.note("held", token)

    def poison(self, token: str) -> None:
        """End the process, in a way or another."""
        if os.getpid() % 2:
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)

    def fails_once(self, token: str) -> None:
        """Fail, and succeed when it is run again."""
        if not CurrentMessage.get_current_message().options.get("retries"):
            raise dramatiq.Retry(delay=50)

    def lingers(self, token: str) -> None:
        """Keep the process from its end, as long as the gate of the queue "other" is shut."""

        def wait() -> None:
            with (self.directory / "gate-other").open() as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)

        threading.Thread(target=wait, daemon=False).start()

    def forks(self, token: str) -> None:
        """Send a message from a child."""
        pid = os.fork()
        if not pid:
            status = 1
            try:
                self.send("mark", f"{token}-child")
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
