"""The rate limiter backend on the store: exact over processes, also when these are killed."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dramatiq.rate_limits import Barrier, ConcurrentRateLimiter, WindowRateLimiter

from equeue_core import DiskFull, QueueClosed, Store, storage
from equeue_core._store._ballast import Ballast
from equeue_dramatiq import LMDBRateLimiterBackend
from tests.contract.clock import Clock
from tests.contract.helpers import WATCHDOG, wait_until
from tests.core._forked import Line, forked
from tests.core.children import Child, child
from tests.waits import counted_transactions, waiting

HOUR = 3_600_000
TIMEOUT = int(WATCHDOG * 1000)

USE = """
from dramatiq.rate_limits import *
from equeue_dramatiq import LMDBRateLimiterBackend
limits = LMDBRateLimiterBackend(path)
"""


@pytest.fixture
def limits(store_path: Path) -> Iterator[LMDBRateLimiterBackend]:
    limits = LMDBRateLimiterBackend(store_path, sync="off")
    yield limits
    limits.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.install(monkeypatch)
    return clock


@contextlib.contextmanager
def children(number: int, script: str, path: Path) -> Iterator[list[Child]]:
    """Processes that have made a backend, and run the script once they are told to."""
    code = USE + "say('ready'); hear()\n" + script
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(child(code, path)) for _ in range(number)]
        assert [other.hear() for other in others] == ["ready"] * number
        for other in others:
            other.say("go")
        yield others


def summed(number: int, script: str, path: Path) -> int:
    """The sum of the numbers that so many processes say at the same time."""
    with children(number, script, path) as others:
        return sum(int(other.hear()) for other in others)


class TestExactOverProcesses:
    @pytest.mark.contract("DRL-02")
    def test_add(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        script = "say(sum(limits.add(f'key {n}', 1, 3600000) for n in range(100)))"
        assert limits.add("key 50", 1, HOUR)
        assert summed(4, script, store_path) == 99

    @pytest.mark.contract("DRL-02")
    def test_incr(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        limits.add("key", 0, HOUR)
        script = "say(sum(limits.incr('key', 1, 250, 3600000) for _ in range(100)))"
        assert summed(4, script, store_path) == 250
        assert not limits.incr("key", 1, 250, HOUR)
        assert limits.incr("key", 1, 251, HOUR)

    @pytest.mark.contract("DRL-02")
    def test_decr(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        limits.add("key", 300, HOUR)
        script = "say(sum(limits.decr('key', 1, 50, 3600000) for _ in range(100)))"
        assert summed(4, script, store_path) == 250
        assert not limits.decr("key", 1, 50, HOUR)
        assert limits.decr("key", 1, 49, HOUR)

    @pytest.mark.contract("DRL-02")
    def test_incr_and_sum(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        limits.add("key 0", 0, HOUR)
        script = """
keys = [f"key {n}" for n in range(10)]
say(sum(limits.incr_and_sum(keys[n % 10], lambda: keys, 1, 250, 3600000) for n in range(100)))
"""
        assert summed(4, script, store_path) == 250

    def test_threads_of_a_process_that_flushes(self, store_path: Path) -> None:
        limits = LMDBRateLimiterBackend(store_path, sync="full")
        outcome: list[bool] = []

        def work() -> None:
            outcome.extend([limits.incr("key", 1, 70, HOUR) for _ in range(20)])

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
        assert (outcome.count(True), len(outcome)) == (70, 120)
        limits.close()

    @pytest.mark.contract("DRL-02")
    def test_a_concurrent_rate_limiter_is_a_mutex(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        number = store_path.with_name("number")
        number.write_text("0")
        script = f"""
limiter = ConcurrentRateLimiter(limits, "mutex", limit=1, ttl=3600000)
done = 0
while done < 50:
    with limiter.acquire(raise_on_failure=False) as acquired:
        if acquired:
            with open({str(number)!r}) as file:
                value = int(file.read())
            with open({str(number)!r}, "w") as file:
                file.write(str(value + 1))
            done += 1
say(done)
"""
        limits.add("other", 1, HOUR)
        assert summed(4, script, store_path) == 200
        assert number.read_text() == "200"

    def test_a_concurrent_rate_limiter_with_several_slots(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        """Of twelve that ask, and hold what they get, three get it."""
        script = """
limiters = [ConcurrentRateLimiter(limits, "slots", limit=3, ttl=3600000).acquire(raise_on_failure=False)
            for _ in range(3)]
say(sum(limiter.__enter__() for limiter in limiters))
hear()
"""
        limits.add("other", 1, HOUR)
        with children(4, script, store_path) as others:
            assert sum(int(other.hear()) for other in others) == 3

    @pytest.mark.contract("DRL-02")
    def test_a_window_rate_limiter(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        script = """
limiter = WindowRateLimiter(limits, "window", limit=50, window=600)
got = 0
for _ in range(30):
    with limiter.acquire(raise_on_failure=False) as acquired:
        got += acquired
say(got)
"""
        limits.add("other", 1, HOUR)
        assert summed(4, script, store_path) == 50

    @pytest.mark.contract("DRL-02")
    def test_a_bucket_rate_limiter(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        script = """
limiter = BucketRateLimiter(limits, "bucket", limit=50, bucket=10**12)  # one that ends in 2033
got = 0
for _ in range(30):
    with limiter.acquire(raise_on_failure=False) as acquired:
        got += acquired
say(got)
"""
        limits.add("other", 1, HOUR)
        assert summed(4, script, store_path) == 50

    @pytest.mark.contract("DRL-02")
    def test_a_barrier(self, limits: LMDBRateLimiterBackend, store_path: Path) -> None:
        barrier = Barrier(limits, "barrier")
        assert barrier.create(parties=5)
        script = f"say(int(Barrier(limits, 'barrier').wait(timeout={TIMEOUT})))\n"
        with children(4, script, store_path) as others:
            assert barrier.wait(timeout=TIMEOUT)
            assert [other.hear() for other in others] == ["1"] * 4

    def test_a_barrier_without_waiting_is_passed_once(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        """What the callbacks of groups rely on."""
        assert Barrier(limits, "barrier").create(parties=100)
        script = """
barrier = Barrier(limits, "barrier")
say(sum(barrier.wait(block=False) for _ in range(25)))
"""
        assert summed(4, script, store_path) == 1


class TestKilledHolders:
    @pytest.mark.contract("DRL-03")
    def test_the_slot_of_a_killed_holder_is_free_after_its_time(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        limiter = ConcurrentRateLimiter(limits, "mutex", limit=1, ttl=HOUR)
        script = """
before = time.time()
held = ConcurrentRateLimiter(limits, "mutex", limit=1, ttl=2000).acquire()
held.__enter__()
say(before)
hear()
"""

        def acquired() -> bool:
            with limiter.acquire(raise_on_failure=False) as got:
                return bool(got)

        limits.add("other", 1, HOUR)
        with children(1, script, store_path) as (holder,):
            before = float(holder.hear())
            holder.kill()
            wait_until(acquired, "the slot is free")
            assert time.time() >= before + 2

    def test_one_that_is_killed_in_mid_work_takes_nothing_with_it(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        limits.add("key", 0, HOUR)
        script = """
say("begun")
while True:
    limits.incr("key", 1, 10**9, 3600000)
    limits.decr("key", 1, 0, 3600000)
"""
        for _ in range(3):
            with children(2, script, store_path) as others:
                for other in others:
                    assert other.hear() == "begun"
                others[0].kill()
                assert limits.incr("alive", 1, 10**9, HOUR)
                others[1].kill()
        assert limits.incr("key", 1, 7, HOUR)  # each left it one too high at most
        assert limits.store.check().ok


class TestWaiting:
    @pytest.mark.contract("DRL-04")
    def test_a_notification_wakes_all_who_wait(
        self, limits: LMDBRateLimiterBackend, store_path: Path
    ) -> None:
        script = f"say('waiting'); say(int(limits.wait('key', {TIMEOUT})))"
        ended = [waiting(lambda: limits.wait("key", None)) for _ in range(3)]
        with children(2, script, store_path) as others:
            assert [other.hear() for other in others] == ["waiting"] * 2
            limits.wait_notify("other", HOUR)
            limits.wait_notify("key", HOUR)
            assert [other.hear() for other in others] == ["1"] * 2
            assert [end() for end in ended] == [True] * 3

    def test_one_that_comes_later_sees_it_within_its_time(
        self, limits: LMDBRateLimiterBackend, clock: Clock
    ) -> None:
        limits.wait_notify("key", 10_000)
        clock.advance(9.9)
        assert limits.wait("key", None)
        assert limits.wait("key", 0)
        clock.advance(0.2)
        assert not limits.wait("key", 0)

    def test_another_notification_prolongs_it(
        self, limits: LMDBRateLimiterBackend, clock: Clock
    ) -> None:
        limits.wait_notify("key", 10_000)
        clock.advance(9)
        limits.wait_notify("key", 10_000)
        clock.advance(9)
        assert limits.wait("key", 0)

    @pytest.mark.parametrize("timeout", [0, -1, 1, 50, 350])
    def test_a_wait_in_vain_lasts_as_long_as_asked(
        self, limits: LMDBRateLimiterBackend, timeout: int
    ) -> None:
        start = time.monotonic()
        assert limits.wait("key", timeout) is False
        assert timeout / 1000 <= time.monotonic() - start < WATCHDOG

    @pytest.mark.contract("DRL-04")
    def test_it_costs_no_poll(
        self, limits: LMDBRateLimiterBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limits.add("key", 1, HOUR)
        environment = limits.store._environment
        looks = counted_transactions(environment, monkeypatch)
        start = time.monotonic()
        assert not limits.wait("key", 900)
        assert len(looks) <= 3 + (time.monotonic() - start - 0.9)

    def test_a_counter_is_no_notification(self, limits: LMDBRateLimiterBackend) -> None:
        assert limits.add("key", 1, HOUR)
        assert not limits.wait("key", 0)
        limits.wait_notify("key", HOUR)
        assert limits.incr("key", 1, 2, HOUR)
        assert not limits.incr("key", 1, 2, HOUR)

    def test_closing_ends_it(self, limits: LMDBRateLimiterBackend) -> None:
        ended = waiting(lambda: limits.wait("key", None))
        limits.close()
        assert isinstance(ended(), QueueClosed)


class TestTime:
    @pytest.mark.contract("DRL-01")
    def test_each_change_gives_a_key_new_time(
        self, limits: LMDBRateLimiterBackend, clock: Clock
    ) -> None:
        changes: list[Callable[[], bool]] = [
            lambda: limits.add("key", 5, 10_000),
            lambda: limits.incr("key", 1, 9, 10_000),
            lambda: limits.decr("key", 1, 0, 10_000),
            lambda: limits.incr_and_sum("key", lambda: ["key"], 1, 20, 10_000),
        ]
        for change in changes:
            assert change()
            clock.advance(9)
        assert not limits.add("key", 1, 10_000)
        clock.advance(2)
        assert limits.add("key", 1, 10_000)

    @pytest.mark.contract("DRL-01")
    def test_what_is_refused_changes_nothing(
        self, limits: LMDBRateLimiterBackend, clock: Clock
    ) -> None:
        assert limits.add("key", 5, 10_000)
        clock.advance(9)
        assert not limits.add("key", 5, 10_000)
        assert not limits.incr("key", 1, 5, 10_000)
        assert not limits.decr("key", 1, 5, 10_000)
        assert not limits.incr_and_sum("key", lambda: ["key"], 1, 5, 10_000)
        assert not limits.incr_and_sum("other", lambda: ["key"], 1, 5, 10_000)
        clock.advance(2)
        assert limits.add("key", 1, 10_000)
        assert limits.add("other", 1, 10_000)

    @pytest.mark.contract("DRL-05")
    def test_expired_keys_are_removed_a_few_at_a_time(
        self, limits: LMDBRateLimiterBackend, clock: Clock
    ) -> None:
        limits.add("kept", 1, HOUR)
        for number in range(200):
            limits.add(f"key {number}", 1, 10_000)
        clock.advance(11)
        sizes = [entries(limits)]
        assert sizes == [402]
        for _ in range(100):
            limits.incr("kept", 1, 1000, HOUR)
            sizes.append(entries(limits))
        assert sizes[-1] == 2
        removed = [before - after for before, after in itertools.pairwise(sizes)]
        assert max(removed) <= 20
        assert limits.store.check().ok


def entries(limits: LMDBRateLimiterBackend) -> int:
    """How many keys the limits have on disk, expiry entries included."""
    prefix = storage.key_prefix(storage.SpaceId.DRAMATIQ_LIMITS)
    with Store(limits.store.path) as store:
        space = storage.Space(store, storage.SpaceId.DRAMATIQ_LIMITS)
        return space.read(lambda txn: sum(1 for _ in storage.scan(txn, prefix)))


class TestUse:
    def test_making_one_touches_no_disk(self, store_path: Path) -> None:
        LMDBRateLimiterBackend(store_path).close()
        assert not store_path.exists()

    def test_it_takes_a_path_or_a_store(self, store_path: Path) -> None:
        with Store(store_path, sync="off") as store:
            backends = [
                LMDBRateLimiterBackend(store),
                LMDBRateLimiterBackend(store=store),
                LMDBRateLimiterBackend(store_path),
                LMDBRateLimiterBackend(os.fspath(store_path)),
            ]
            added = [backend.add("key", 1, HOUR) for backend in backends]
            assert added == [True, False, False, False]
            for backend in backends:
                backend.close()
            assert store.queues() == []  # still open

    def test_namespaces_are_apart(self, store_path: Path) -> None:
        names = ("one", "two")
        one, two = (LMDBRateLimiterBackend(store_path, namespace=name) for name in names)
        assert one.add("key", 1, HOUR)
        assert two.add("key", 1, HOUR)
        one.wait_notify("event", HOUR)
        assert not two.wait("event", 0)
        one.close()
        two.close()

    def test_a_key_may_be_any_text(self, limits: LMDBRateLimiterBackend) -> None:
        keys = ["", "\N{SNOWMAN}", "k" * 400, "k" * 5000, "k" * 4999 + "l"]
        assert [limits.add(key, 1, HOUR) for key in keys] == [True] * 5
        assert [limits.add(key, 1, HOUR) for key in keys] == [False] * 5

    def test_numbers_may_be_large_and_negative(self, limits: LMDBRateLimiterBackend) -> None:
        assert limits.add("key", 10**30, HOUR)
        assert limits.decr("key", 2 * 10**30, -(10**30), HOUR)
        assert not limits.decr("key", 1, -(10**30), HOUR)

    def test_the_keys_are_asked_for_once_and_outside_of_the_transaction(
        self, limits: LMDBRateLimiterBackend
    ) -> None:
        calls = []

        def keys() -> list[str]:
            calls.append(limits.incr("counted", 1, 10, HOUR))
            return ["counted", "key"]

        assert limits.incr_and_sum("key", keys, 1, 2, HOUR)
        assert calls == [True]
        assert not limits.incr_and_sum("key", keys, 1, 2, HOUR)
        assert calls == [True, True]

    def test_keys_that_fail_change_nothing(self, limits: LMDBRateLimiterBackend) -> None:
        def keys() -> list[str]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            limits.incr_and_sum("key", keys, 1, 2, HOUR)
        assert limits.add("key", 1, HOUR)

    def test_a_limiter_can_be_pickled_with_it(self, limits: LMDBRateLimiterBackend) -> None:
        limiter = WindowRateLimiter(limits, "key", limit=1, window=600)
        with limiter.acquire():
            pass
        copy = pickle.loads(pickle.dumps(limiter))
        with copy.acquire(raise_on_failure=False) as acquired:
            assert not acquired
        copy.backend.store.close()

    def test_it_goes_on_in_a_forked_child(self, limits: LMDBRateLimiterBackend) -> None:
        limits.add("key", 1, HOUR)
        ended = waiting(lambda: limits.wait("from child", None))

        def use(line: Line) -> None:
            line.say(str(limits.incr("key", 1, 2, HOUR)))
            line.say(str(limits.wait("to child", TIMEOUT)))
            limits.wait_notify("from child", HOUR)

        with forked(use) as other:
            assert other.hear() == "True"
            assert not limits.incr("key", 1, 2, HOUR)
            limits.wait_notify("to child", HOUR)
            assert other.hear() == "True"
            assert ended() is True
            assert other.wait() == 0

    @pytest.mark.contract("DRL-06")
    def test_a_full_disk_refuses_to_take_a_slot_and_lets_give_it_back(
        self, limits: LMDBRateLimiterBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limits.add("key", 1, HOUR)
        monkeypatch.setattr(Ballast, "_look", lambda self: None)
        limits.store._environment._ballast.spent = True
        for refused in (
            lambda: limits.add("other", 1, HOUR),
            lambda: limits.incr("key", 1, 2, HOUR),
            lambda: limits.incr_and_sum("key", list, 1, 2, HOUR),
            lambda: limits.wait_notify("key", HOUR),
        ):
            with pytest.raises(DiskFull):
                refused()
        assert limits.decr("key", 1, 0, HOUR)
        assert limits.incr("key", 1, 0, HOUR) is False
