"""What every rate limiter backend promises, and the limiters that Dramatiq builds on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import pytest
from dramatiq import RateLimitExceeded
from dramatiq.rate_limits import (
    Barrier,
    BucketRateLimiter,
    ConcurrentRateLimiter,
    RateLimiterBackend,
    WindowRateLimiter,
)

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import HOUR
from tests.contract.helpers import WATCHDOG, wait_until

TIMEOUT = int(WATCHDOG * 1000)

SetTime = Callable[[float], None]


class LimitsBackend(Protocol):
    """What a binding of the contract provides as the fixture `backend`."""

    def open(self) -> RateLimiterBackend:
        """A backend object; on the same limits as the last one."""


def value_of(limits: RateLimiterBackend, key: str) -> int:
    """What a key stands at, found by trying; it stays as it is."""
    value = 0
    while not limits.incr(key, 0, value, HOUR):
        value += 1
    return value


def within(limits: RateLimiterBackend, ttl: int, action: Callable[[str], None]) -> str:
    """Do something to a new key before its time of `ttl` ms is over, then let that time pass; the key."""
    while True:
        key = f"limit-{uuid4().hex}"
        start = time.monotonic()
        assert limits.add(key, 1, ttl)
        action(key)
        if time.monotonic() - start < ttl / 2000:
            break
        # It may have been too late: once more.
    wait_until(lambda: time.monotonic() - start > 1.5 * ttl / 1000, "the time is over")
    return key


def in_threads(count: int, call: Callable[[], bool]) -> list[bool]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda _: call(), range(count)))


class LimitsFixtures:
    capabilities: ClassVar[frozenset[Capability]]

    @pytest.fixture
    def limits(self, backend: LimitsBackend) -> RateLimiterBackend:
        return backend.open()

    @pytest.fixture
    def key(self) -> str:
        return f"limit-{uuid4().hex}"

    @pytest.fixture
    def set_time(self, monkeypatch: pytest.MonkeyPatch) -> SetTime:
        """Sets the clock of Dramatiq's limiters, which put the time into their keys."""

        def put(seconds: float) -> None:
            clock = SimpleNamespace(time=lambda: seconds)
            monkeypatch.setattr("dramatiq.rate_limits.bucket.time", clock)
            monkeypatch.setattr("dramatiq.rate_limits.window.time", clock)

        return put


class LimitsContract(LimitsFixtures):
    @pytest.mark.contract("DRL-01")
    def test_add_succeeds_once(self, limits: RateLimiterBackend, key: str) -> None:
        assert limits.add(key, 3, HOUR) is True
        assert limits.add(key, 5, HOUR) is False
        assert value_of(limits, key) == 3

    def test_keys_are_independent(self, limits: RateLimiterBackend, key: str) -> None:
        assert limits.add(key, 1, HOUR)
        assert limits.add(f"{key}@other", 2, HOUR)
        assert (value_of(limits, key), value_of(limits, f"{key}@other")) == (1, 2)

    def test_backends_share_their_keys(self, backend: LimitsBackend, key: str) -> None:
        one, other = backend.open(), backend.open()
        assert one.add(key, 1, HOUR)
        assert not other.add(key, 1, HOUR)
        assert other.incr(key, 1, 2, HOUR)
        assert not one.incr(key, 1, 2, HOUR)

    def test_a_key_is_free_after_its_time(self, limits: RateLimiterBackend, key: str) -> None:
        assert limits.add(key, 1, 10)
        wait_until(lambda: limits.add(key, 2, HOUR), "the key is free")
        assert value_of(limits, key) == 2

    @pytest.mark.contract("DRL-01")
    def test_incr_up_to_the_maximum(self, limits: RateLimiterBackend, key: str) -> None:
        assert limits.incr(key, 1, 3, HOUR) is True
        assert limits.incr(key, 2, 3, HOUR) is True
        assert limits.incr(key, 1, 3, HOUR) is False
        assert limits.incr(key, 5, 3, HOUR) is False
        assert value_of(limits, key) == 3

    @pytest.mark.contract("DRL-01")
    def test_decr_down_to_the_minimum(self, limits: RateLimiterBackend, key: str) -> None:
        assert limits.add(key, 5, HOUR)
        assert limits.decr(key, 2, 2, HOUR) is True
        assert limits.decr(key, 2, 2, HOUR) is False
        assert limits.decr(key, 1, 2, HOUR) is True
        assert limits.decr(key, 1, 2, HOUR) is False
        assert value_of(limits, key) == 2

    @pytest.mark.contract("DRL-01")
    def test_a_key_that_is_not_there_stands_at_zero(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        assert limits.decr(key, 1, 0, HOUR) is False
        assert limits.incr(key, 1, 0, HOUR) is False
        assert limits.decr(key, 2, -2, HOUR) is True
        assert limits.incr(key, 3, 1, HOUR) is True
        assert value_of(limits, key) == 1

    @pytest.mark.contract("DRL-01")
    def test_incr_and_decr_give_a_key_new_time(self, limits: RateLimiterBackend) -> None:
        def incr(key: str) -> None:
            limits.incr(key, 1, 10, HOUR)

        def decr(key: str) -> None:
            limits.decr(key, 1, -10, HOUR)

        assert value_of(limits, within(limits, 120, incr)) == 2
        assert limits.add(within(limits, 120, decr), 5, HOUR) is False

    @pytest.mark.contract("DRL-01")
    def test_what_fails_changes_nothing(self, limits: RateLimiterBackend) -> None:
        def fail(key: str) -> None:
            assert not limits.incr(key, 1, 1, HOUR)
            assert not limits.decr(key, 1, 1, HOUR)
            assert not limits.add(key, 1, HOUR)

        key = within(limits, 120, fail)
        wait_until(lambda: limits.add(key, 1, HOUR), "the key is free")

    @pytest.mark.contract("DRL-01")
    def test_incr_and_sum_up_to_the_maximum(self, limits: RateLimiterBackend, key: str) -> None:
        keys = [key, f"{key}@1", f"{key}@2"]
        assert limits.add(keys[1], 2, HOUR)
        assert limits.add(keys[2], 1, HOUR)
        assert limits.incr_and_sum(key, lambda: keys, 1, 5, HOUR) is True
        assert limits.incr_and_sum(key, lambda: keys, 2, 5, HOUR) is False
        assert limits.incr_and_sum(key, lambda: keys, 1, 5, HOUR) is True
        assert limits.incr_and_sum(key, lambda: keys, 1, 5, HOUR) is False
        assert [value_of(limits, each) for each in keys] == [2, 2, 1]

    def test_incr_and_sum_over_keys_that_are_not_there(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        keys = [f"{key}@1", f"{key}@2"]
        assert limits.incr_and_sum(key, lambda: keys, 2, 1, HOUR) is False
        assert limits.incr_and_sum(key, lambda: keys, 1, 1, HOUR) is True
        assert limits.incr_and_sum(key, lambda: [key], 1, 1, HOUR) is False
        assert value_of(limits, key) == 1

    @pytest.mark.contract("DRL-01")
    def test_incr_and_sum_keeps_to_the_maximum_for_the_key_alone_too(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        assert limits.add(key, 5, HOUR)
        assert limits.incr_and_sum(key, lambda: [f"{key}@1"], 1, 5, HOUR) is False
        assert value_of(limits, key) == 5

    @pytest.mark.contract("DRL-02")
    def test_no_count_is_lost_between_threads(self, limits: RateLimiterBackend, key: str) -> None:
        assert in_threads(60, lambda: limits.add(key, 0, HOUR)).count(True) == 1
        assert in_threads(60, lambda: limits.incr(key, 1, 40, HOUR)).count(True) == 40
        assert in_threads(60, lambda: limits.decr(key, 1, 10, HOUR)).count(True) == 30
        assert (
            in_threads(60, lambda: limits.incr_and_sum(key, lambda: [key], 1, 25, HOUR)).count(True)
            == 15
        )
        assert value_of(limits, key) == 25

    def test_waiting_in_vain_ends(self, limits: RateLimiterBackend, key: str) -> None:
        timeout = 75 if Capability.SHORT_WAITS in self.capabilities else 1000
        limits.wait_notify(f"{key}@other", HOUR)
        start = time.monotonic()
        assert limits.wait(key, timeout) is False
        assert 0.95 * timeout / 1000 < time.monotonic() - start < WATCHDOG

    @pytest.mark.contract("DRL-04")
    def test_a_notification_ends_every_wait(
        self, backend: LimitsBackend, limits: RateLimiterBackend, key: str
    ) -> None:
        others = [backend.open() for _ in range(3)]
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(each.wait, key, TIMEOUT) for each in (limits, *others)]

            def notified() -> bool:
                # Without KEEPS_NOTIFICATIONS, one that is not yet waiting misses it.
                limits.wait_notify(key, HOUR)
                return all(each.done() for each in waiting)

            wait_until(notified, "all have been notified")
            assert [each.result() for each in waiting] == [True] * 4

    @needs(Capability.KEEPS_NOTIFICATIONS)
    @pytest.mark.contract("DRL-04")
    def test_a_notification_is_there_for_who_comes_later(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        limits.wait_notify(key, HOUR)
        for timeout in (TIMEOUT, 1000, None):
            assert limits.wait(key, timeout) is True

    @needs(Capability.KEEPS_NOTIFICATIONS, Capability.SHORT_WAITS)
    def test_a_notification_is_kept_for_its_time(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        limits.wait_notify(key, 1)
        wait_until(lambda: not limits.wait(key, 1), "the notification has expired")

    @needs(Capability.KEEPS_NOTIFICATIONS)
    def test_one_may_wait_without_a_limit(self, limits: RateLimiterBackend, key: str) -> None:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(limits.wait, key, None)
            limits.wait_notify(key, HOUR)
            assert waiting.result(WATCHDOG) is True


class LimitersContract(LimitsFixtures):
    @pytest.mark.contract("DRL-02")
    def test_a_concurrent_limiter_lets_so_many_in(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        limiter = ConcurrentRateLimiter(limits, key, limit=2)
        with limiter.acquire(), limiter.acquire():
            with pytest.raises(RateLimitExceeded), limiter.acquire():
                raise AssertionError("a third got in")
            with limiter.acquire(raise_on_failure=False) as acquired:
                assert acquired is False
        with limiter.acquire(), limiter.acquire(raise_on_failure=False) as acquired:
            assert acquired

    def test_a_concurrent_limiter_is_left_by_an_exception_too(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        mutex = ConcurrentRateLimiter(limits, key)
        for _ in range(3):
            with pytest.raises(LookupError), mutex.acquire():
                raise LookupError

    @pytest.mark.contract("DRL-03")
    def test_a_place_is_free_again_after_its_time(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        mutex = ConcurrentRateLimiter(limits, key, ttl=10)

        def free() -> bool:
            return bool(ConcurrentRateLimiter(limits, key)._acquire())

        assert mutex._acquire()
        wait_until(free, "the place is free")
        assert not free()

    def test_a_concurrent_limiter_counts_threads(self, backend: LimitsBackend, key: str) -> None:
        limiters = [ConcurrentRateLimiter(backend.open(), key, limit=3) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            inside = list(pool.map(lambda limiter: limiter._acquire(), limiters))
        assert inside.count(True) == 3

    @pytest.mark.contract("DRL-02")
    def test_a_bucket_limiter_lets_so_many_in_a_bucket(
        self, limits: RateLimiterBackend, key: str, set_time: SetTime
    ) -> None:
        limiter = BucketRateLimiter(limits, key, limit=2, bucket=HOUR)
        for bucket in (1000, 1001):
            let_in = []
            for seconds in (0, 1, 3599):
                set_time(bucket * HOUR / 1000 + seconds)
                with limiter.acquire(raise_on_failure=False) as acquired:
                    let_in.append(acquired)
            assert let_in == [True, True, False]

    @pytest.mark.contract("DRL-02")
    def test_a_window_limiter_lets_so_many_in_a_window(
        self, limits: RateLimiterBackend, key: str, set_time: SetTime
    ) -> None:
        limiter = WindowRateLimiter(limits, key, limit=2, window=60)
        let_in = {}
        for seconds in (1000, 1030, 1059, 1060, 1061, 1089, 1090):
            set_time(seconds)
            with limiter.acquire(raise_on_failure=False) as acquired:
                let_in[seconds] = acquired
        assert let_in == {
            1000: True,
            1030: True,
            1059: False,
            1060: True,
            1061: False,
            1089: False,
            1090: True,
        }

    @pytest.mark.contract("DRL-02")
    def test_a_barrier_is_reached_by_the_last(self, limits: RateLimiterBackend, key: str) -> None:
        barrier = Barrier(limits, key)
        assert barrier.create(parties=3)
        assert not barrier.create(parties=3)
        assert [barrier.wait(block=False) for _ in range(3)] == [False, False, True]

    def test_a_barrier_is_reached_once_by_threads(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        barrier = Barrier(limits, key)
        assert barrier.create(parties=40)
        reached = in_threads(40, lambda: barrier.wait(block=False))
        assert reached.count(True) == 1

    @needs(Capability.KEEPS_NOTIFICATIONS)
    def test_who_waits_at_a_barrier_goes_on_with_the_last(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        barrier = Barrier(limits, key)
        assert barrier.create(parties=4)
        with ThreadPoolExecutor(4) as pool:
            waiting: list[Any] = [pool.submit(barrier.wait, timeout=TIMEOUT) for _ in range(4)]
            assert [each.result(WATCHDOG) for each in waiting] == [True] * 4

    @needs(Capability.SHORT_WAITS)
    def test_who_waits_at_a_barrier_in_vain_gives_up(
        self, limits: RateLimiterBackend, key: str
    ) -> None:
        barrier = Barrier(limits, key)
        assert barrier.create(parties=2)
        assert barrier.wait(timeout=50) is False
