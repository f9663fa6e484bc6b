"""Threads that end short messages take turns; nobody depends on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from equeue_dramatiq import _turns as turns_module
from equeue_dramatiq._turns import Turns
from tests.contract.helpers import wait_until

WATCHDOG = 20  # seconds
SHORT = turns_module._SHORT / 2
LONG = turns_module._SHORT * 2
AWAY = turns_module._ABSENT * 2


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Ender:
    """A thread that ends messages when it is told to."""

    def __init__(self, turns: Turns, clock: Clock) -> None:
        self._turns = turns
        self._clock = clock
        self._thread = ThreadPoolExecutor(1)

    def end(self, after: float = 0.0) -> None:
        """End a message, and so much after what was before."""
        self._clock.now += after
        self.begin().result(WATCHDOG)

    def begin(self) -> Future[None]:
        """The same, without waiting for it."""
        return self._thread.submit(self._end)

    def _end(self) -> None:
        with self._turns:
            pass

    def is_waiting(self) -> bool:
        """Whether somebody stands in the line."""
        return self._turns._line.locked()

    def stop(self) -> None:
        self._clock.now += 10.0  # whoever still waits goes on
        self._thread.shutdown()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns_module, "_now", clock)
    return clock


@pytest.fixture
def enders(clock: Clock) -> Iterator[list[Ender]]:
    """Three threads that have ended a message just now; none of them has the turn."""
    turns = Turns()
    threads = [Ender(turns, clock) for _ in range(3)]
    for thread in threads:
        thread.end()
    yield threads
    for thread in threads:
        thread.stop()


def test_a_thread_with_short_messages_keeps_its_turn_and_the_next_one_waits(
    enders: list[Ender], clock: Clock
) -> None:
    first, second, _ = enders
    first.end()
    waiting = second.begin()
    wait_until(second.is_waiting, "the second waits")
    for _ in range(10):
        first.end(after=SHORT)
    assert not waiting.done()

    first.end(after=turns_module._TURN)

    waiting.result(WATCHDOG)


def test_a_thread_with_long_messages_neither_waits_nor_keeps_others_waiting(
    enders: list[Ender], clock: Clock
) -> None:
    first, second, _ = enders
    first.end()

    second.end(after=LONG)  # while the first has the turn
    first.end()  # it gives the turn up: this message took as long
    second.end()  # a short one, and the turn is free


def test_the_turn_passes_when_its_holder_stays_away(enders: list[Ender], clock: Clock) -> None:
    absent, second, _ = enders
    absent.end()
    waiting = second.begin()
    wait_until(second.is_waiting, "the second waits")

    clock.now += AWAY

    waiting.result(WATCHDOG)
    absent.end()  # which takes nothing from the second
    second.end(after=LONG)


def test_an_exception_at_the_end_of_a_message_does_not_keep_the_turn_from_others(
    enders: list[Ender], clock: Clock
) -> None:
    turns, waiting = enders[0]._turns, enders[0]
    for _ in range(2):  # the second one is a short message
        with pytest.raises(KeyError), turns:
            raise KeyError

    future = waiting.begin()
    wait_until(waiting.is_waiting, "it waits")

    clock.now += AWAY

    future.result(WATCHDOG)


def test_many_threads_end_all_their_messages() -> None:
    turns = Turns()
    ended = []

    def work() -> None:
        for number in range(300):
            with turns:
                ended.append(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)

    assert len(ended) == 8 * 300
