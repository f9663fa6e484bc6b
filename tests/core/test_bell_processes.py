"""The bells between processes that are killed, interrupted and forked: no wake-up is ever lost.

The consumers here never wake by a clock. What is lost would hang the test.
"""

from __future__ import annotations

import gc
import os
import random
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from equeue_core._store._bells import Bells
from equeue_core._store._wait_poller import EpollPoller, Poller, SelectorPoller
from tests.contract.helpers import WATCHDOG
from tests.core._forked import Forked, Line, forked
from tests.core._toy_store import QUEUE, Board, Handle, StoreLock, consume, consume_slowly

POLLERS: dict[str, Callable[[], Poller]] = {"poll": partial(SelectorPoller, selectors.PollSelector)}
if hasattr(select, "epoll"):
    POLLERS["epoll"] = EpollPoller
    POLLERS["epoll by selectors"] = partial(SelectorPoller, selectors.EpollSelector)

SEED = int(os.environ.get("EQUEUE_SEED", "7"))

needs_epoll = pytest.mark.skipif(not hasattr(select, "epoll"), reason="needs epoll")


@pytest.fixture(params=POLLERS)
def poller(request: pytest.FixtureRequest) -> Callable[[], Poller]:
    return POLLERS[request.param]


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def store(tmp_path: Path, board: Board) -> Iterator[Handle]:
    handle = Handle(tmp_path, board)
    with handle.lock:
        handle.owners.open()
    yield handle
    handle.close()


def start(stack: ExitStack, kind: Callable[..., object], *arguments: object) -> Forked:
    child = stack.enter_context(forked(kind, *arguments))
    assert child.hear() == "here"
    child.until_asleep()
    return child


def first_to_speak(children: list[Forked]) -> Forked:
    ready, _, _ = select.select([child.line.reading for child in children], [], [], WATCHDOG)
    assert ready, "nobody woke"
    return next(child for child in children if child.line.reading in ready)


def get_acquainted(sleepers: list[Forked]) -> None:
    """Each that came has woken those before it, who did not know of it."""
    for child in sleepers[:-1]:
        wake_for_nothing(child)
        child.until_asleep()
    assert all(child.line.silent() for child in sleepers)


def wake_for_nothing(child: Forked) -> None:
    assert child.hear() == "awake"
    child.say("look")
    assert child.hear() == "none"


def until_all_is_taken(
    store: Handle, board: Board, children: list[Forked], owner_ids: list[int] | None = None
) -> None:
    lines = [child.line.reading for child in children]
    while True:
        with store.lock:
            sleepers = board.sleepers(owner_ids or [], store.generation())
            assert store.count() + store.tokens() >= sleepers
            if not board.ready:
                return
        ready, _, _ = select.select(lines, [], [], WATCHDOG)
        assert ready, "a job lies there, and everyone sleeps"
        for descriptor in ready:
            os.read(descriptor, 4096)


class TestWhoWakes:
    def test_each_job_is_taken(
        self, store: Handle, tmp_path: Path, board: Board, poller: Callable[[], Poller]
    ) -> None:
        with ExitStack() as stack:
            children = [
                start(stack, consume, tmp_path, board, owner_id, poller) for owner_id in (1, 2, 3)
            ]
            for n in (1, 1, 2, 3, 5):
                store.put(n)
                until_all_is_taken(store, board, children)

    @needs_epoll
    def test_one_ring_wakes_one(self, store: Handle, tmp_path: Path, board: Board) -> None:
        with ExitStack() as stack:
            children = [
                start(stack, consume_slowly, tmp_path, board, owner_id) for owner_id in (1, 2, 3)
            ]
            get_acquainted(children)
            store.put()
            woken = first_to_speak(children)
            assert woken.hear() == "awake"
            woken.say("look")
            assert woken.hear() == "job"
            # Who was woken runs, or has said so.
            for child in children:
                child.until_asleep()
            assert all(child.line.silent() for child in children)

    @needs_epoll
    def test_several_rings_wake_as_many(self, store: Handle, tmp_path: Path, board: Board) -> None:
        with ExitStack() as stack:
            children = [
                start(stack, consume_slowly, tmp_path, board, owner_id) for owner_id in (1, 2, 3)
            ]
            get_acquainted(children)
            store.put(2)
            woken: list[Forked] = []
            for _ in range(2):
                woken.append(first_to_speak([c for c in children if c not in woken]))
                assert woken[-1].hear() == "awake"
            (third,) = [child for child in children if child not in woken]
            third.until_asleep()
            assert third.line.silent()
            for child in woken:
                child.say("look")
                assert child.hear() == "job"

    def test_a_broadcast_wakes_all(
        self, store: Handle, tmp_path: Path, board: Board, poller: Callable[[], Poller]
    ) -> None:
        with ExitStack() as stack:
            children = [
                start(stack, consume_slowly, tmp_path, board, owner_id, poller)
                for owner_id in (1, 2, 3)
            ]
            get_acquainted(children)
            for _ in range(2):
                with store.lock:
                    store.bells.broadcast(0)
                for child in children:
                    wake_for_nothing(child)
                    child.until_asleep()
                assert all(child.line.silent() for child in children)


class TestTheChosenOne:
    """Of several sleepers, one is woken for the job. What if it never looks?"""

    @pytest.fixture
    def sleepers(self, store: Handle, tmp_path: Path, board: Board) -> Iterator[list[Forked]]:
        with ExitStack() as stack:
            yield [
                start(stack, consume_slowly, tmp_path, board, owner_id) for owner_id in (1, 2, 3)
            ]

    @needs_epoll
    def test_it_is_killed(self, store: Handle, sleepers: list[Forked]) -> None:
        get_acquainted(sleepers)
        store.put()
        chosen = first_to_speak(sleepers)
        assert chosen.hear() == "awake"
        chosen.kill()
        others = [child for child in sleepers if child is not chosen]
        for child in others:
            assert child.hear() == "awake"
            child.say("look")
        assert sorted(child.hear() for child in others) == ["job", "none"]

    @needs_epoll
    def test_it_gives_up(self, store: Handle, sleepers: list[Forked]) -> None:
        get_acquainted(sleepers)
        store.put()
        chosen = first_to_speak(sleepers)
        assert chosen.hear() == "awake"
        chosen.say("leave")
        assert chosen.hear() == "left"
        others = [child for child in sleepers if child is not chosen]
        successor = first_to_speak(others)
        assert successor.hear() == "awake"
        successor.say("look")
        assert successor.hear() == "job"


class TestTorture:
    ROUNDS = 150

    def test_no_wake_up_is_lost(
        self, store: Handle, tmp_path: Path, board: Board, poller: Callable[[], Poller]
    ) -> None:
        chance = random.Random(SEED)
        with ExitStack() as stack:

            def newcomer(owner_id: int) -> Forked:
                return stack.enter_context(forked(consume, tmp_path, board, owner_id, poller))

            alive = {owner_id: newcomer(owner_id) for owner_id in range(1, 5)}
            for child in alive.values():
                assert child.hear() == "here"
            next_id = len(alive) + 1
            for _ in range(self.ROUNDS):
                victim = chance.choice(list(alive)) if chance.random() < 0.5 else None
                before = chance.random() < 0.3
                if victim is not None and before:
                    os.kill(alive[victim].pid, signal.SIGKILL)
                store.put(chance.choice((1, 1, 1, 3)))
                if victim is not None:
                    _spin(chance.random() * 0.0003)
                    alive.pop(victim).kill()
                    with store.lock:
                        store.owners.forget(victim)
                    alive[next_id] = newcomer(next_id)
                    next_id += 1
                until_all_is_taken(store, board, list(alive.values()), list(alive))


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class InterruptedHereError(Exception):
    pass


class TestAsyncExceptions:
    """A signal handler that raises, at any point of the use of a waiter."""

    ROUNDS = 3000

    def test_nothing_is_broken(self, tmp_path: Path, board: Board) -> None:
        with forked(self._bombarded, tmp_path, board, self.ROUNDS) as child:
            assert child.hear() == "done"
            assert child.wait() == 0

    @classmethod
    def _bombarded(cls, line: Line, directory: Path, board: Board, rounds: int) -> None:
        # Its record would keep what it saw alive.
        sys.unraisablehook = lambda _: None
        lock = StoreLock(directory)
        Bells(os.fspath(directory / "bell")).counts()
        gc.collect()
        before = os.listdir("/proc/self/fd")
        bells = Bells(os.fspath(directory / "bell"))
        chance = random.Random(3)
        signal.signal(signal.SIGALRM, _interrupt)
        hits = 0
        while hits < rounds:
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.random() * 0.0003 + 1e-6)
                    for _ in range(50):
                        cls._use(bells, lock)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedHereError:
                hits += 1
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

        other = Bells(bells.directory)
        with lock, bells.waiter(jobs=(QUEUE,), changes=(QUEUE,)) as waiter:
            waiter.register()
            other.ring(QUEUE)
            assert waiter.wait(WATCHDOG)
            waiter.settle()
            waiter.register()
            other.broadcast(QUEUE)
            assert waiter.wait(WATCHDOG)
            waiter.leave()
        bells.close()
        del bells, other, waiter
        gc.collect()
        assert os.listdir("/proc/self/fd") == before
        line.say("done")

    @staticmethod
    def _use(bells: Bells, lock: StoreLock) -> None:
        waiter = bells.waiter(jobs=(QUEUE,), changes=(QUEUE,))
        try:
            try:
                lock.__enter__()
                waiter.settle()
                waiter.register()
                bells.ring(QUEUE)
                bells.broadcast(QUEUE)
            finally:
                lock.__exit__()
            assert waiter.wait(1.0)
        finally:
            try:
                lock.__enter__()
                waiter.leave()
            finally:
                lock.__exit__()
                waiter.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise InterruptedHereError


class TestFork:
    def test_the_child_drops_and_the_parent_goes_on(
        self, store: Handle, tmp_path: Path, poller: Callable[[], Poller]
    ) -> None:
        bells = Bells(os.fspath(tmp_path / "bell"), poller)
        waiter = bells.waiter(jobs=(QUEUE,), changes=(QUEUE,))
        waiter.register()
        with bells.waiter(jobs=(2,)) as pooled:
            pooled.register()
            pooled.leave()

        def child(line: Line) -> None:
            inside = _links(bells.directory)
            assert inside
            bells.drop()
            assert _links(bells.directory) - _links_of(store) == set()
            fresh = Bells(bells.directory, poller)
            with fresh.waiter(jobs=(QUEUE,)) as mine:
                assert not mine.wait(0)
            fresh.ring(QUEUE)
            line.say("rung")

        with forked(child) as process:
            assert process.hear() == "rung"
            assert process.wait() == 0
        assert waiter.wait(WATCHDOG)
        waiter.settle()
        waiter.register()
        assert not waiter.wait(0)
        store.bells.broadcast(QUEUE)
        assert waiter.wait(WATCHDOG)
        waiter.leave()
        waiter.close()
        bells.close()

    def test_a_child_that_does_not_drop_disturbs_no_broadcast(
        self, store: Handle, tmp_path: Path, poller: Callable[[], Poller]
    ) -> None:
        bells = Bells(os.fspath(tmp_path / "bell"), poller)
        with bells.waiter(changes=(QUEUE,)) as waiter, forked(lambda line: line.hear()):
            for _ in range(3):
                waiter.register()
                assert not waiter.wait(0)
                store.bells.broadcast(QUEUE)
                assert waiter.wait(WATCHDOG)
        bells.close()


def _links(directory: str) -> set[str]:
    """The descriptors that are open on something in a directory."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith(directory):
                found.add(name)
        except FileNotFoundError:
            pass
    return found


def _links_of(store: Handle) -> set[str]:
    before = _links(store.bells.directory)
    store.bells.drop()
    store.owners.drop()
    return before - _links(store.bells.directory)
