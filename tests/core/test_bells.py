"""The bells, within one process."""

from __future__ import annotations

import gc
import os
import select
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from equeue_core._store import _bell_counts, _wait_probe
from equeue_core._store._bell_counts import LISTENING
from equeue_core._store._bell_descriptor import bytes_waiting, open_fifo, open_file
from equeue_core._store._bells import Bells, Waiter, changes_slot, jobs_slot
from equeue_core._store._wait_poller import (
    NAP,
    EpollPoller,
    NapPoller,
    Poller,
    SelectorPoller,
)
from tests.contract.helpers import WATCHDOG

FIFO_POLLERS: dict[str, Callable[[], Poller]] = {
    "poll": partial(SelectorPoller, selectors.PollSelector),
    "select": partial(SelectorPoller, selectors.SelectSelector),
}
if hasattr(select, "epoll"):
    FIFO_POLLERS["epoll"] = EpollPoller
    FIFO_POLLERS["epoll by selectors"] = partial(SelectorPoller, selectors.EpollSelector)
POLLERS = {**FIFO_POLLERS, "naps": NapPoller}

OVERDUE = 0.25
"""Seconds that a busy machine may add to a wait of a few milliseconds before this is a failure."""


@pytest.fixture(params=FIFO_POLLERS)
def bells(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bells]:
    bells = Bells(os.fspath(tmp_path / "bell"), FIFO_POLLERS[request.param])
    yield bells
    bells.close()


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Bells]:
    """The same bells as another process has them."""
    others = Bells(os.fspath(tmp_path / "bell"))
    yield others
    others.close()


def tokens(bells: Bells, queue_id: int) -> int:
    return bytes_waiting(bells.token(jobs_slot(queue_id)))


def count(bells: Bells, queue_id: int) -> int:
    return bells.counts()[jobs_slot(queue_id)]


class TestTokenBell:
    def test_nobody_sleeps_nothing_happens(self, bells: Bells) -> None:
        bells.ring(1)
        assert os.listdir(bells.directory) == ["sleepers"]

    def test_a_ring_wakes_a_sleeper(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        assert not waiter.wait(0)
        others.ring(1)
        assert waiter.wait(WATCHDOG)
        assert waiter.wait(0), "it stays awake until it has looked"
        waiter.settle()
        assert not waiter.wait(0)

    def test_a_ring_before_the_wait_is_not_lost(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        others.ring(1)
        assert waiter.wait(None)

    def test_another_queues_ring_wakes_nobody(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        others.ring(2)
        assert not waiter.wait(0)

    @pytest.mark.parametrize(("n", "rung"), [(1, 1), (2, 2), (3, 3), (1000, 3)])
    def test_no_more_tokens_than_jobs_or_sleepers(
        self, bells: Bells, others: Bells, n: int, rung: int
    ) -> None:
        waiters = [bells.waiter(jobs=(1,)) for _ in range(3)]
        for waiter in waiters:
            waiter.register()
        others.ring(1, n)
        assert (tokens(bells, 1), count(bells, 1)) == (rung, 3 - rung)

    def test_registering_twice_counts_once(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        waiter.register()
        assert count(bells, 1) == 1

    def test_a_settled_sleeper_registers_again(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        others.ring(1)
        waiter.settle()
        assert (tokens(bells, 1), count(bells, 1)) == (0, 0)
        waiter.register()
        assert count(bells, 1) == 1

    def test_settling_without_a_token_leaves_it_registered(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        waiter.settle()
        assert waiter.registered
        assert count(bells, 1) == 1

    def test_only_the_registered_read_tokens(self, bells: Bells, others: Bells) -> None:
        sleeper, newcomer = bells.waiter(jobs=(1,)), bells.waiter(jobs=(1,))
        sleeper.register()
        others.ring(1)
        newcomer.settle()
        newcomer.leave()
        assert tokens(bells, 1) == 1

    def test_leaving_is_counted_once(self, bells: Bells) -> None:
        waiter, other = bells.waiter(jobs=(1,)), bells.waiter(jobs=(1,))
        waiter.leave()
        waiter.register()
        other.register()
        waiter.leave()
        waiter.leave()
        assert count(bells, 1) == 1

    def test_leaving_with_a_token_hands_it_on(self, bells: Bells, others: Bells) -> None:
        leaver, other = bells.waiter(jobs=(1,)), bells.waiter(jobs=(1,))
        leaver.register()
        other.register()
        others.ring(1)
        leaver.leave()
        assert (tokens(bells, 1), count(bells, 1)) == (1, 0)
        leaver.close()
        assert other.wait(0)

    def test_leaving_after_a_look_hands_nothing_on(self, bells: Bells, others: Bells) -> None:
        lucky, other = bells.waiter(jobs=(1,)), bells.waiter(jobs=(1,))
        lucky.register()
        other.register()
        others.ring(1)
        lucky.settle()
        lucky.leave()
        assert (tokens(bells, 1), count(bells, 1)) == (0, 1)
        assert not other.wait(0)

    def test_several_queues(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1, 2))
        waiter.register()
        others.ring(2)
        assert waiter.wait(WATCHDOG)
        waiter.settle()
        assert (count(bells, 1), count(bells, 2)) == (1, 0)
        waiter.leave()
        assert (count(bells, 1), count(bells, 2)) == (0, 0)

    def test_a_job_of_one_queue_hands_the_others_token_on(
        self, bells: Bells, others: Bells
    ) -> None:
        waiter, second = bells.waiter(jobs=(1, 2)), bells.waiter(jobs=(2,))
        waiter.register()
        second.register()
        others.ring(1)
        others.ring(2)
        waiter.settle(claimed=1)
        waiter.leave()
        assert tokens(bells, 1) == 0
        assert tokens(bells, 2) == 1
        assert second.wait(0)

    def test_the_killed_are_rung_for_and_forgotten(self, bells: Bells, others: Bells) -> None:
        bells.counts()[jobs_slot(1)] = 5
        others.ring(1)
        assert count(bells, 1) == 0, "there is no FIFO"
        bells.token(jobs_slot(1))
        bells.counts()[jobs_slot(1)] = 5
        for _ in range(5):
            others.ring(1)
        assert count(bells, 1) == 0

    def test_a_full_fifo_wakes_everyone(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        bells.counts()[jobs_slot(1)] = _bell_counts.MAXIMUM
        others.ring(1, _bell_counts.MAXIMUM)
        assert (tokens(bells, 1), count(bells, 1)) == (0, 0)
        assert waiter.wait(WATCHDOG)
        waiter.settle()
        waiter.register()
        assert count(bells, 1) == 1

    def test_reset_forgets_the_dead_and_keeps_the_living(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        bells.counts()[jobs_slot(1)] += 3
        others.ring(1, 2)
        others.reset([1])
        assert (tokens(bells, 1), count(bells, 1)) == (0, 0)
        assert waiter.wait(WATCHDOG)
        assert not waiter.registered
        waiter.register()
        assert count(bells, 1) == 1
        assert not waiter.wait(0)

    def test_who_left_after_a_reset_takes_nobodys_place(self, bells: Bells, others: Bells) -> None:
        early, late = bells.waiter(jobs=(1,)), bells.waiter(jobs=(1,))
        early.register()
        others.reset([1])
        late.register()
        others.ring(1)
        early.settle()
        early.leave()
        assert tokens(bells, 1) == 1
        assert late.wait(0)

    def test_tokens_for_nobody_are_cleared_in_the_end(self, bells: Bells, others: Bells) -> None:
        bells.counts()[jobs_slot(1)] = 20
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        others.ring(1, 20)
        wakings = 0
        while waiter.wait(0):
            wakings += 1
            waiter.settle()
            waiter.register()
        assert wakings < 20
        assert (tokens(bells, 1), count(bells, 1)) == (0, 1)


class TestBroadcastBell:
    def test_everyone_wakes_once(self, bells: Bells, others: Bells) -> None:
        waiters = [bells.waiter(changes=(1,)) for _ in range(3)]
        for waiter in waiters:
            waiter.register()
        assert not any(waiter.wait(0) for waiter in waiters)
        others.broadcast(1)
        for waiter in waiters:
            assert waiter.wait(WATCHDOG)
            waiter.register()
            assert not waiter.wait(0)

    def test_an_interrupted_broadcast_can_be_slept_after(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(changes=(1,))
        waiter.register()
        cell = bells.counts()[changes_slot(1)]
        others.broadcast(1)
        bells.counts()[changes_slot(1)] = cell  # as if it was killed before it counted
        assert waiter.wait(WATCHDOG)
        waiter.register()
        assert not waiter.wait(0)
        others.broadcast(1)
        assert waiter.wait(WATCHDOG)

    def test_two_broadcasts_that_were_not_heard(self, bells: Bells, others: Bells) -> None:
        late, other = bells.waiter(changes=(1,)), bells.waiter(changes=(1,))
        late.register()
        for _ in range(2):
            other.register()
            others.broadcast(1)
        late.register()
        assert not late.wait(0)
        others.broadcast(1)
        assert late.wait(WATCHDOG)

    def test_it_rings_again(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(changes=(1,))
        for _ in range(3):
            waiter.register()
            others.broadcast(1)
            assert waiter.wait(WATCHDOG)

    def test_a_ring_that_was_not_waited_for_is_not_lost(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(changes=(1, 2))
        waiter.register()
        others.broadcast(1)
        assert waiter.wait(WATCHDOG)
        others.broadcast(2)
        waiter.register()
        others.broadcast(1)
        assert waiter.wait(WATCHDOG)

    def test_other_changes_wake_nobody(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(changes=(1,))
        waiter.register()
        others.broadcast(2)
        assert not waiter.wait(0)

    def test_everybody_hears_the_stores_own_bell(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        others.broadcast(0)
        assert waiter.wait(WATCHDOG)

    def test_who_leaves_does_not_silence_the_others(self, bells: Bells, others: Bells) -> None:
        leaver, other = bells.waiter(changes=(1,)), bells.waiter(changes=(1,))
        leaver.register()
        others.broadcast(1)
        other.register()
        other.wait(0)
        other.register()
        leaver.leave()
        leaver.close()
        others.broadcast(1)
        assert other.wait(WATCHDOG)

    def test_nobody_listens_nothing_is_opened(self, bells: Bells) -> None:
        bells.broadcast(1)
        bells.counts()[changes_slot(1)] = LISTENING
        bells.broadcast(1)
        assert not bells.counts()[changes_slot(1)] & LISTENING

    def test_it_is_known_how_the_platform_hangs_up(self, bells: Bells) -> None:
        os.makedirs(bells.directory)
        assert _wait_probe.hang_ups_work(bells.directory, bells.make_poller)
        assert os.listdir(bells.directory) == []

    def test_naps_where_it_hangs_up_for_ever(self, bells: Bells) -> None:
        bells._hang_ups = False
        waiter = bells.waiter(jobs=(1,), changes=(1,))
        waiter.register()
        assert not waiter.wait(0.001)
        assert waiter.wait(None)
        jobs_only = bells.waiter(jobs=(1,))
        jobs_only.register()
        assert not jobs_only.wait(2 * NAP)
        bells.reset([1])
        assert count(bells, 1) == 2


@pytest.fixture(params=POLLERS)
def waiter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Waiter]:
    """A waiter of any make."""
    bells = Bells(os.fspath(tmp_path / "bell"), POLLERS[request.param])
    with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
        waiter.register()
        yield waiter
        waiter.leave()
    bells.close()


def wait_through(waiter: Waiter, seconds: float) -> None:
    """As its users wait: again and again, because it may wake for nothing."""
    deadline = time.monotonic() + seconds
    left = seconds
    while waiter.wait(left):
        left = deadline - time.monotonic()
        if left <= 0:
            break


class TestTimeout:
    @pytest.mark.parametrize("seconds", [0.0002, 0.001, 0.0015, 0.0123, 0.05])
    def test_never_early(self, waiter: Waiter, seconds: float) -> None:
        for _ in range(5):
            start = time.monotonic()
            wait_through(waiter, seconds)
            assert seconds <= time.monotonic() - start < seconds + OVERDUE

    @pytest.mark.parametrize("seconds", [0.0, -1.0])
    def test_a_timeout_that_has_passed_does_not_wait(self, waiter: Waiter, seconds: float) -> None:
        assert not waiter.wait(seconds)

    @pytest.mark.parametrize("seconds", [0.0004, 0.0123])
    def test_usually_exact(self, bells: Bells, seconds: float) -> None:
        # The best of many is a matter of arithmetic, not of the machine's load.
        waiter = bells.waiter(jobs=(1,))
        best = OVERDUE
        for _ in range(200):
            start = time.monotonic()
            assert not waiter.wait(seconds)
            best = min(best, time.monotonic() - start - seconds)
            if best < 0.0005:
                return
        pytest.fail(f"never less than {best} s late")

    @pytest.mark.parametrize("make", [POLLERS["poll"], POLLERS.get("epoll", NapPoller)])
    def test_exact_with_descriptors_that_select_cannot_take(
        self, tmp_path: Path, make: Callable[[], Poller]
    ) -> None:
        held: list[int] = []
        try:
            while not held or held[-1] < 1024:
                held.append(os.dup(0))
            with Bells(os.fspath(tmp_path / "bell"), make).waiter(jobs=(1,)) as waiter:
                start = time.monotonic()
                wait_through(waiter, 0.0015)
                assert time.monotonic() - start >= 0.0015
        except OSError:
            pytest.skip("the limit of open files is too low")
        finally:
            for descriptor in held:
                os.close(descriptor)

    def test_a_signal_handler_does_not_end_the_wait(self, waiter: Waiter) -> None:
        seen = []
        before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
        try:
            timer = threading.Timer(
                0.01, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)
            )
            timer.start()
            start = time.monotonic()
            wait_through(waiter, 0.05)
            assert time.monotonic() - start >= 0.05
            timer.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert seen

    def test_an_exception_of_a_signal_handler_ends_it(self, waiter: Waiter) -> None:
        def interrupt(*_: object) -> None:
            raise InterruptedWaitError

        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            timer = threading.Timer(
                0.01, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)
            )
            timer.start()
            with pytest.raises(InterruptedWaitError):
                wait_through(waiter, WATCHDOG)
            timer.join()
        finally:
            signal.signal(signal.SIGUSR1, before)


class InterruptedWaitError(Exception):
    pass


class TestKick:
    def test_before_the_wait(self, waiter: Waiter) -> None:
        waiter.kick()
        waiter.kick()
        assert waiter.wait(None)
        assert not waiter.wait(0)

    def test_during_the_wait(self, waiter: Waiter) -> None:
        kicked = []

        def kick() -> None:
            kicked.append(True)
            waiter.kick()

        timer = threading.Timer(0.02, kick)
        timer.start()
        deadline = time.monotonic() + WATCHDOG
        while waiter.wait(deadline - time.monotonic()) and not kicked:
            pass  # a nap that is over
        assert time.monotonic() < deadline
        timer.join()

    def test_of_a_closed_waiter_does_nothing(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.close()
        waiter.kick()
        assert not bells.waiter(jobs=(1,)).wait(0)


class TestExtraDescriptor:
    def test_it_wakes_as_long_as_it_is_readable(self, bells: Bells) -> None:
        reading, writing = os.pipe()
        try:
            waiter = bells.waiter(jobs=(1,), extra_fd=reading)
            waiter.register()
            assert not waiter.wait(0)
            os.write(writing, b"x")
            assert waiter.wait(WATCHDOG)
            assert waiter.wait(WATCHDOG)
            os.read(reading, 1)
            assert not waiter.wait(0)
            waiter.leave()
        finally:
            os.close(reading)
            os.close(writing)

    @pytest.mark.skipif(not hasattr(select, "epoll"), reason="needs epoll")
    def test_a_nested_epoll(self, tmp_path: Path) -> None:
        bells = Bells(os.fspath(tmp_path / "bell"))
        reading, writing = os.pipe()
        with select.epoll() as inner:
            inner.register(reading, select.EPOLLIN)
            waiter = bells.waiter(jobs=(1,), extra_fd=inner.fileno())
            assert not waiter.wait(0)
            os.write(writing, b"x")
            assert waiter.wait(WATCHDOG)
        os.close(reading)
        os.close(writing)
        bells.close()

    def test_an_event_loop_can_watch_the_waiter(self, bells: Bells, others: Bells) -> None:
        waiter = bells.waiter(jobs=(1,), changes=(1,))
        if waiter.fileno() < 0:
            pytest.skip("this selector has no descriptor")
        with selectors.DefaultSelector() as loop:
            loop.register(waiter.fileno(), selectors.EVENT_READ)
            for ring in (others.ring, others.broadcast, lambda _: waiter.kick()):
                waiter.register()
                assert not loop.select(0)
                ring(1)
                assert loop.select(WATCHDOG)
                assert waiter.wait(0)
                waiter.settle()
        waiter.leave()


class TestPool:
    def test_a_closed_waiters_descriptors_are_used_again(self, bells: Bells) -> None:
        first = bells.waiter(jobs=(1,), changes=(1,))
        line = first._line
        first.close()
        first.close()
        second = bells.waiter(jobs=(1,), changes=(1,))
        third = bells.waiter(jobs=(1,), changes=(1,))
        assert second._line is line
        assert third._line is not line

    def test_a_waiter_from_the_pool_is_clean(self, bells: Bells, others: Bells) -> None:
        with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
            waiter.register()
            waiter.kick()
            others.broadcast(1)
            waiter.leave()
        with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
            assert not waiter.registered
            waiter.register()
            assert not waiter.wait(0)
            others.broadcast(1)
            assert waiter.wait(WATCHDOG)
            waiter.leave()

    def test_a_registered_waiter_does_not_go_into_the_pool(self, bells: Bells) -> None:
        first = bells.waiter(jobs=(1,))
        line = first._line
        first.register()
        first.close()
        second = bells.waiter(jobs=(1,))
        assert second._line is not line
        assert not second.registered

    def test_a_closed_waiter_cannot_be_used(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.close()
        for use in (waiter.wait, waiter.fileno):
            with pytest.raises(ValueError, match="closed"):
                use()

    def test_a_look_of_a_closed_waiter_disturbs_nobody(self, bells: Bells) -> None:
        # Whoever made it was interrupted, while another thread was about to run the look for both.
        waiter = bells.waiter(jobs=(1,))
        waiter.close()
        waiter.settle()
        waiter.register()
        waiter.leave()
        assert not waiter.registered
        with bells.waiter(jobs=(1,)) as next_one:
            assert not next_one.registered

    @pytest.mark.parametrize("make", POLLERS.values(), ids=POLLERS)
    def test_no_descriptor_is_left(self, tmp_path: Path, make: Callable[[], Poller]) -> None:
        gc.collect()
        before = os.listdir("/proc/self/fd")
        bells = Bells(os.fspath(tmp_path / "bell"), make)
        in_use = bells.waiter(jobs=(1, 2), changes=(1, 2))
        for _ in range(3):
            waiter = bells.waiter(jobs=(1, 2), changes=(1, 2))
            waiter.register()
            bells.ring(1)
            bells.broadcast(1)
            waiter.leave()
            waiter.close()
        bells.close()
        in_use.close()
        del bells, in_use
        assert os.listdir("/proc/self/fd") == before

    def test_waiters_in_use_survive_the_end(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,))
        waiter.register()
        bells.close()
        waiter.kick()
        assert waiter.wait(None)
        waiter.settle()
        waiter.leave()
        waiter.close()


class TestFiles:
    def test_modes(self, bells: Bells) -> None:
        with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
            waiter.register()
            waiter.leave()
        modes = {
            name: stat.S_IMODE(os.stat(os.path.join(bells.directory, name)).st_mode)
            for name in os.listdir(bells.directory)
        }
        assert modes == {"1.0": 0o600, "2": 0o600, "3.0": 0o600, "sleepers": 0o600}
        assert stat.S_IMODE(os.stat(bells.directory).st_mode) == 0o700

    def test_nothing_is_made_before_the_first_use(self, tmp_path: Path) -> None:
        bells = Bells(os.fspath(tmp_path / "bell"))
        bells.close()
        assert os.listdir(tmp_path) == []

    def test_without_fifos_there_is_nothing_to_ring(self, tmp_path: Path) -> None:
        bells = Bells(os.fspath(tmp_path / "bell"), NapPoller)
        with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
            waiter.register()
            bells.ring(1)
            bells.broadcast(1)
            bells.reset([1])
            assert waiter.wait(None)
            waiter.settle()
            waiter.leave()
            assert waiter.fileno() == -1
        bells.close()
        assert os.listdir(tmp_path) == []

    def test_the_counts_are_sparse(self, bells: Bells) -> None:
        bells.waiter(jobs=(1,)).register()
        state = os.stat(os.path.join(bells.directory, "sleepers"))
        assert state.st_size == 4 * _bell_counts.SLOTS
        assert state.st_blocks * 512 <= state.st_size // 2
        last = bells.waiter(jobs=((1 << 16) - 1,))
        last.register()
        bells.ring((1 << 16) - 1)
        assert last.wait(WATCHDOG)

    @pytest.mark.parametrize("size", [0, 100, 4 * _bell_counts.SLOTS + 4096])
    def test_a_counts_file_of_another_size_is_put_right(
        self, bells: Bells, others: Bells, size: int
    ) -> None:
        os.makedirs(bells.directory)
        path = Path(bells.directory, "sleepers")
        path.write_bytes(b"\1" * size)
        waiter = bells.waiter(jobs=(3000,))
        waiter.register()
        assert path.stat().st_size == 4 * _bell_counts.SLOTS
        others.ring(3000)
        assert waiter.wait(WATCHDOG)

    def test_garbage_in_the_counts_costs_nothing_but_time(
        self, bells: Bells, others: Bells
    ) -> None:
        os.makedirs(bells.directory)
        Path(bells.directory, "sleepers").write_bytes(b"\xff" * (4 * _bell_counts.SLOTS))
        waiter = bells.waiter(jobs=(1,), changes=(1,))
        waiter.register()
        others.ring(1)
        assert waiter.wait(WATCHDOG)
        waiter.settle()
        waiter.register()
        others.broadcast(1)
        assert waiter.wait(WATCHDOG)

    def test_a_fifo_that_became_a_file_is_made_anew(self, bells: Bells, others: Bells) -> None:
        os.makedirs(bells.directory)
        for path in (bells.side(1), bells.path(jobs_slot(1)), bells.side(changes_slot(1))):
            Path(path).write_bytes(b"a copy")
        waiter = bells.waiter(jobs=(1,), changes=(1,))
        waiter.register()
        assert not waiter.wait(0)
        others.ring(1)
        assert waiter.wait(WATCHDOG)

    def test_descriptors_are_not_inherited(self, bells: Bells) -> None:
        waiter = bells.waiter(jobs=(1,), changes=(1,))
        waiter.register()
        bells.ring(1)
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except FileNotFoundError:
                continue
            if bells.directory in target or "anon_inode" in target:
                assert not os.get_inheritable(int(name)), target


class TestFullDisk:
    def test_a_waiter_without_room_looks_now_and_then(
        self, bells: Bells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", full)
            waiter = bells.waiter(jobs=(1,), changes=(1,))
            waiter.register()
            assert not waiter.wait(0.001)
            assert waiter.wait(None)
            waiter.settle()
            waiter.leave()
            waiter.close()
        with bells.waiter(jobs=(1,), changes=(1,)) as waiter:
            waiter.register()
            assert not waiter.wait(2 * NAP)
            waiter.leave()

    def test_the_same_without_room_for_a_fifo(
        self, bells: Bells, others: Bells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "mkfifo", full)
            others.counts()
            bells._hang_ups = True
            waiter = bells.waiter(jobs=(1,), changes=(1,))
            waiter.register()
            assert waiter.wait(None)
            waiter.settle()
            waiter.leave()
            waiter.close()

    def test_ringing_without_room_for_the_counts(
        self, bells: Bells, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full)
            bells.ring(1)
            bells.broadcast(1)


UNSHARE = ("unshare", "--mount")


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = "mkdir -p /tmp && mount -t tmpfs tmpfs /tmp"
    return subprocess.run([*UNSHARE, "sh", "-c", mount], capture_output=True).returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="may not mount a small file system")
def test_a_file_system_that_is_really_full(tmp_path: Path) -> None:
    """To look into a hole of a mapped file on a full tmpfs is death by SIGBUS."""
    script = textwrap.dedent(
        """
        import os, subprocess, sys
        from equeue_core._store._bells import Bells
        path = sys.argv[1]
        options = ["-t", "tmpfs", "-o", "size=64k"]
        subprocess.run(["mount", *options, "tmpfs", path], check=True)
        early, late = Bells(path + "/bell"), Bells(path + "/bell")
        with early.waiter(jobs=(1,), changes=(1,)) as waiter:
            waiter.register()
            waiter.leave()
        try:
            with open(path + "/fill", "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == 28
        for bells in (early, late):
            with bells.waiter(jobs=(1, 20_000), changes=(20_000,)) as waiter:
                waiter.settle()
                waiter.register()
                assert waiter.wait(None)
                bells.ring(20_000)
                bells.broadcast(20_000)
                waiter.settle()
                waiter.leave()
            with bells.waiter(jobs=(1,)) as waiter:
                waiter.register()
                bells.ring(1)
                assert waiter.wait(None)
                waiter.leave()
        print("alive")
        """
    )
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", script, os.fspath(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        cwd=os.fspath(Path(__file__).parents[2]),
    )
    assert done.stdout == "alive\n", done.stderr


class TestDescriptor:
    def test_closed_once(self, tmp_path: Path) -> None:
        one = open_fifo(os.fspath(tmp_path / "fifo"), os.O_RDWR)
        number = one.fileno()
        one.close()
        other = os.open(os.devnull, os.O_RDONLY)
        assert other == number
        one.close()
        del one
        gc.collect()
        os.close(other)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)

    def test_closed_with_the_object(self, tmp_path: Path) -> None:
        number = open_file(os.fspath(tmp_path / "file"), os.O_CREAT).fileno()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)

    def test_a_closed_one_has_no_number(self, tmp_path: Path) -> None:
        one = open_fifo(os.fspath(tmp_path / "fifo"), os.O_RDWR)
        one.close()
        with pytest.raises(ValueError, match="closed"):
            one.fileno()
