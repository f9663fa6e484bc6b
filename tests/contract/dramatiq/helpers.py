"""What the contracts' tests share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from dramatiq import Broker, Message, Middleware, Worker
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.rate_limits import RateLimiterBackend
from dramatiq.results import ResultBackend

from tests.contract.helpers import WATCHDOG

TICK = 10
"""Milliseconds that a consumer waits before it looks whether it is to stop."""

HOUR = 3_600_000
"""In milliseconds: a delay or TTL that doesn't end within a test."""


class BrokerBackend(Protocol):
    """What a binding of the broker contract provides as the fixture `backend`."""

    def open(self) -> Broker:
        """A new broker object with the default middleware; on the same messages, if they last."""

    def dead_letters(self, broker: Broker, queue: str) -> int:
        """How many dead letters a queue has."""

    def results(self) -> ResultBackend: ...

    def limits(self) -> RateLimiterBackend: ...


class Signal(NamedTuple):
    name: str
    subject: Any
    rest: tuple[Any, ...]


class Recorder(Middleware):
    """Middleware that writes down every signal, and lets a test wait for them."""

    def __init__(self) -> None:
        self._signals: list[Signal] = []
        self._changed = threading.Condition()

    def record(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        subject, *rest = args or (None,)
        with self._changed:
            self._signals.append(Signal(name, subject, (*rest, *kwargs.values())))
            self._changed.notify_all()

    def all(self, *names: str) -> list[Signal]:
        """The signals of these names so far, in order."""
        with self._changed:
            return [signal for signal in self._signals if signal.name in names]

    def of(self, message: Message[Any]) -> list[str]:
        """The names of the signals about one message, in order; without those of its enqueue, which
        may have run by the time that its sender hears of it.
        """
        with self._changed:
            return [
                signal.name
                for signal in self._signals
                if isinstance(signal.subject, (Message, MessageProxy))
                and signal.subject.message_id == message.message_id
                and not signal.name.endswith("_enqueue")
            ]

    def wait_for(self, name: str, count: int = 1) -> list[Signal]:
        """Wait until a signal has come `count` times."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.all(name)) >= count, WATCHDOG)
        assert came, f"{name} came {len(self.all(name))} times, not {count}"
        return self.all(name)


def _recording(name: str) -> Any:
    def method(self: Recorder, broker: Broker, *args: Any, **kwargs: Any) -> None:
        self.record(name, args, kwargs)

    return method


for _name in dir(Middleware):
    if _name.startswith(("before_", "after_")):
        setattr(Recorder, _name, _recording(_name))


def note(queue: str, *args: Any, actor: str = "work", **options: Any) -> Message[Any]:
    """A message, for an actor that need not exist."""
    return Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options=options)


def send(broker: Broker, queue: str, values: Iterable[Any]) -> None:
    """Enqueue a message for each value."""
    for value in values:
        broker.enqueue(note(queue, value))


def take(consumer: Consumer, count: int = 1) -> list[MessageProxy]:
    """The next messages, however often the consumer says that there is none."""
    deadline = time.monotonic() + WATCHDOG
    messages: list[MessageProxy] = []
    while len(messages) < count:
        assert time.monotonic() < deadline, f"only {len(messages)} of {count} messages came"
        message = next(consumer)
        if message is not None:
            messages.append(message)
    return messages


def values_of(messages: Iterable[MessageProxy]) -> list[Any]:
    """The first argument of each."""
    return [message.args[0] for message in messages]


def drain(consumer: Consumer, count: int) -> list[Any]:
    """Take and acknowledge so many messages, and no more come; their first arguments."""
    values = []
    for _ in range(count):
        (message,) = take(consumer)
        values.append(message.args[0])
        consumer.ack(message)
    assert_nothing_comes(consumer)
    return values


def assert_nothing_comes(consumer: Consumer) -> None:
    """The consumer has nothing to give, at three looks."""
    for _ in range(3):
        message = next(consumer)
        assert message is None, f"{message!r} came"


def start_worker(broker: Broker, threads: int = 1, queues: set[str] | None = None) -> Worker:
    """A running worker."""
    worker = Worker(broker, queues=queues, worker_timeout=TICK, worker_threads=threads)
    worker.start()
    return worker


@contextlib.contextmanager
def working(broker: Broker, threads: int = 1, queues: set[str] | None = None) -> Iterator[Worker]:
    """A worker for the length of a block."""
    worker = start_worker(broker, threads, queues)
    try:
        yield worker
    finally:
        worker.stop()


def wait(event: threading.Event, what: str) -> None:
    assert event.wait(WATCHDOG), f"gave up waiting until {what}"


class Held:
    """What actors run that are held up: the first until the test goes on, the others not any more.

    Attributes:
        ran: the values that they were given, in order.
        started: one has started.
        go_on: is set by the test.
    """

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.started = threading.Event()
        self.go_on = threading.Event()

    def work(self, value: Any) -> None:
        self.ran.append(value)
        self.started.set()
        wait(self.go_on, "the test goes on")
