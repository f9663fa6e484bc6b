"""SSCAN and ZSCAN show, at least once, all that is there from beginning to end, whatever else changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rq._helpers import Caller, scan_pages

LASTING = {b"lasting%d" % number for number in range(150)} | {b"", b"\xff" * 300, b"x" * 5000}


def _changes(call: Caller) -> Iterator[None]:
    for number in range(200):
        call("SADD", "s", f"new{number}")
        call("SREM", "s", f"doomed{number}")
        call("ZADD", "z", number, f"new{number}", 500 - number, f"lasting{number % 150}")
        call("ZREM", "z", f"doomed{number}")
        yield
    while True:
        yield


def _fill(call: Caller) -> None:
    for member in LASTING:
        call("SADD", "s", member)
        call("ZADD", "z", 1, member)
    for number in range(200):
        call("SADD", "s", f"doomed{number}")
        call("ZADD", "z", number, f"doomed{number}")


@pytest.mark.parametrize("count", [1, 7, 10, 1000])
@pytest.mark.parametrize("command", ["SSCAN", "ZSCAN"])
def test_a_scan_shows_what_stays(call: Caller, command: str, count: int) -> None:
    _fill(call)
    changes = _changes(call)
    name = command[0].lower()
    seen = scan_pages(
        call, command, name, 0, "COUNT", count, cursor_at=2, between=lambda: next(changes)
    )
    members = seen if command == "SSCAN" else seen[::2]
    assert set(members) >= LASTING


def test_a_scan_of_a_set_that_becomes_large_meanwhile_ends(call: Caller) -> None:
    call("SADD", "s", "a", "b")
    cursor, page = call("SSCAN", "s", 0)
    assert (cursor, sorted(page)) == (b"0", [b"a", b"b"])
    call("SADD", "s", *range(1000))
    cursor, page = call("SSCAN", "s", 0, "COUNT", 10)
    assert cursor != b"0"
    assert 10 <= len(page) < 20
    call("SPOP", "s", 2000)
    assert call("SSCAN", "s", cursor) == [b"0", []]
    call("SADD", "s", "a")
    assert call("SSCAN", "s", cursor) == [b"0", [b"a"]]
    assert call("SSCAN", "s", 1 << 63) == [b"0", [b"a"]]


def test_a_pattern_leaves_out_what_does_not_match(call: Caller) -> None:
    _fill(call)
    wanted = {member for member in LASTING if member.startswith(b"lasting1")}
    assert set(call.scan_all("SSCAN", "s", 0, "MATCH", "lasting1*", cursor_at=2)) == wanted
    pairs = call.scan_all("ZSCAN", "z", 0, "MATCH", "lasting1*", cursor_at=2)
    assert dict(zip(pairs[::2], pairs[1::2], strict=True)) == dict.fromkeys(wanted, b"1")
