"""Keys expire at their millisecond, and are removed some time later."""

from __future__ import annotations

import pytest

from equeue_rq import _running
from tests.rq._helpers import Caller

START = 1_700_000_000_000


class Clock:
    """The time that transactions see, in epoch milliseconds."""

    def __init__(self) -> None:
        self.now = START

    def wall(self) -> float:
        return (self.now + 0.5) / 1000  # in the midst of the millisecond


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_running, "_wall", clock.wall)
    return clock


@pytest.mark.contract("RQC-08")
@pytest.mark.parametrize(
    "words",
    [
        ("SET", "k", "v", "PX", 1500),
        ("PSETEX", "k", 1500, "v"),
        ("SET", "k", "v", "PXAT", START + 1500),
    ],
)
def test_a_string_is_there_until_its_millisecond(
    call: Caller, clock: Clock, words: tuple[str | int, ...]
) -> None:
    call(*words)
    assert call("PTTL", "k") == 1500
    assert call("TTL", "k") == 2
    clock.now += 1499
    assert call("GET", "k") == b"v"
    assert call("PTTL", "k") == 1
    clock.now += 1
    assert call("GET", "k") is None
    assert call("PTTL", "k") == call("TTL", "k") == call("EXPIRETIME", "k") == -2
    assert call("KEYS", "*") == []
    assert call("SCAN", 0) == [b"0", []]
    assert call("EXISTS", "k") == 0
    assert call("TYPE", "k") == b"none"


@pytest.mark.contract("RQC-08")
@pytest.mark.parametrize(
    ("words", "gone_after"),
    [
        (("EXPIRE", "k", 2), 2000),
        (("PEXPIRE", "k", 2), 2),
        (("EXPIREAT", "k", START // 1000 + 2), 2000),
        (("PEXPIREAT", "k", START + 2), 2),
    ],
)
def test_any_key_expires(
    call: Caller, clock: Clock, words: tuple[str | int, ...], gone_after: int
) -> None:
    call("RPUSH", "k", *range(100))
    assert call(*words) == 1
    clock.now += gone_after - 1
    assert call("LLEN", "k") == 100
    clock.now += 1
    assert call("LLEN", "k") == 0
    assert call("RPUSH", "k", "new") == 1
    assert call("LRANGE", "k", 0, -1) == [b"new"]
    assert call("PTTL", "k") == -1


def test_what_keeps_and_what_ends_an_expiry(call: Caller, clock: Clock) -> None:
    def after(*words: str | int) -> int:
        call("SET", "k", 1, "PX", 5000)
        call(*words)
        return int(call("PTTL", "k"))

    assert after("INCR", "k") == 5000
    assert after("APPEND", "k", "0") == 5000
    assert after("SETRANGE", "k", 1, "0") == 5000
    assert after("INCRBYFLOAT", "k", "0.5") == 5000
    assert after("SET", "k", 2, "KEEPTTL") == 5000
    assert after("GETEX", "k") == 5000
    assert after("SET", "k", 2) == -1
    assert after("GETSET", "k", 2) == -1
    assert after("MSET", "k", 2) == -1
    assert after("PERSIST", "k") == -1
    assert after("GETEX", "k", "PERSIST") == -1
    assert after("GETEX", "k", "EX", 9) == 9000
    assert after("PEXPIRE", "k", 7000, "LT") == 5000
    assert after("PEXPIRE", "k", 7000, "GT") == 7000
    assert after("EXPIRE", "k", 0) == -2


def test_a_new_name_takes_the_expiry_along(call: Caller, clock: Clock) -> None:
    call("SET", "k", 1, "PX", 100)
    call("SET", "other", 2, "PX", 50)
    call("RENAME", "k", "other")
    call("COPY", "other", "copy")
    call("MOVE", "other", 3)
    clock.now += 60
    assert call("PTTL", "copy") == 40
    call.session.db = 3
    assert call("PTTL", "other") == 40
    clock.now += 40
    assert call("EXISTS", "other") == 0


def test_an_expired_key_is_none_for_those_who_ask_for_one(call: Caller, clock: Clock) -> None:
    call("SET", "k", 1, "PX", 10)
    clock.now += 10
    assert call("SET", "k", 2, "XX") is None
    assert call("SET", "k", 3, "NX", "PX", 10) == b"OK"
    clock.now += 10
    assert call("PEXPIRE", "k", 10) == call("PERSIST", "k") == call("DEL", "k") == 0
    assert call("SETNX", "k", 4) == 1
    call("PEXPIRE", "k", 10)
    clock.now += 10
    assert call("COPY", "k", "l") == 0
    assert call("INCR", "k") == 1


def test_expired_keys_are_removed_by_whoever_writes(call: Caller, clock: Clock) -> None:
    for number in range(100):
        call("HSET", f"h{number}", *range(200))
        call("RPUSH", f"l{number}", *range(50))
        call("PEXPIRE", f"h{number}", 100)
        call("PEXPIRE", f"l{number}", 100)
    clock.now += 100
    assert call("KEYS", "*") == []
    for _ in range(1000):
        call("SET", "k", 1)
    call("DEL", "k")
    assert call.left_over() == []
