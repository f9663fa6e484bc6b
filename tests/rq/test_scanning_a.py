"""SCAN and HSCAN show, at least once, all that is there from beginning to end, whatever else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from equeue_rq._messages import CommandError
from tests.rq._helpers import Caller, scan_pages


def _changes(call: Caller) -> Iterator[None]:
    for number in range(200):
        call("SET", f"new{number}", 1)
        call("DEL", f"doomed{number}")
        call("RENAME", f"old{number}", f"renamed{number}")
        call("HSET", "h", f"new{number}", 1)
        call("HDEL", "h", f"doomed{number}")
        yield
    while True:
        yield


def _fill(call: Caller) -> set[bytes]:
    lasting = {b"lasting%d" % number for number in range(150)} | {b"", b"\xff" * 300, b"x" * 5000}
    for name in lasting:
        call("SET", name, 1)
        call("HSET", "h", name, "v" * 50)
    for number in range(200):
        call("SET", f"doomed{number}", 1)
        call("SET", f"old{number}", 1)
        call("HSET", "h", f"doomed{number}", 1)
    return lasting


@pytest.mark.parametrize("count", [1, 7, 10, 1000])
def test_scan_shows_what_stays(call: Caller, count: int) -> None:
    lasting = _fill(call)
    changes = _changes(call)
    seen = scan_pages(call, "SCAN", 0, "COUNT", count, cursor_at=1, between=lambda: next(changes))
    assert lasting <= set(seen)
    assert max(Counter(seen).values()) == 1


@pytest.mark.parametrize("count", [1, 7, 10, 1000])
def test_hscan_shows_what_stays(call: Caller, count: int) -> None:
    lasting = _fill(call)
    changes = _changes(call)
    seen = scan_pages(
        call, "HSCAN", "h", 0, "COUNT", count, cursor_at=2, between=lambda: next(changes)
    )
    assert lasting <= set(seen[::2])


def test_scan_goes_on_behind_a_key_that_is_gone(call: Caller) -> None:
    call("MSET", *(word for number in range(20) for word in (f"k{number:02}", 1)))
    cursor, page = call("SCAN", 0, "COUNT", 5)
    call("DEL", *page)
    assert call("SCAN", cursor, "COUNT", 100) == [b"0", [b"k%02d" % n for n in range(5, 20)]]


def test_scan_looks_only_where_its_pattern_may_match(call: Caller) -> None:
    call("MSET", *(word for number in range(500) for word in (f"k{number}", 1)))
    call("MSET", "m", 1, "m1", 1, "m2" + "x" * 500, 1)
    cursor, page = call("SCAN", 0, "MATCH", "m*")
    assert cursor == b"0"
    assert sorted(page) == [b"m", b"m1", b"m2" + b"x" * 500]
    assert sorted(call("KEYS", "m*")) == sorted(page)
    assert call("KEYS", "m" + "?" * 501) == [b"m2" + b"x" * 500]


def test_scan_finds_the_keys_of_a_type(call: Caller) -> None:
    for number in range(30):
        call("SET", f"s{number}", 1)
        call("RPUSH", f"l{number}", 1)
        call("HSET", f"h{number}", "f", 1)
    seen = call.scan_all("SCAN", 0, "TYPE", "list", "COUNT", 4, cursor_at=1)
    assert sorted(seen) == sorted(b"l%d" % number for number in range(30))


@pytest.mark.parametrize("cursor", [b"9" * 1001, b"9" * 5000, b"", b"-1", b"0x1", b"1.0"])
def test_what_is_no_cursor_is_refused(call: Caller, cursor: bytes) -> None:
    with pytest.raises(CommandError, match=r"^ERR invalid cursor$"):
        call("SCAN", cursor)


@pytest.mark.parametrize("cursor", [5, 1 << 64, b"9" * 900])
def test_a_cursor_that_scan_never_gave_is_a_position_too(call: Caller, cursor: int | bytes) -> None:
    call("SET", "k", 1)
    assert call("SCAN", cursor)[1] in ([], [b"k"])


def test_random_keys_and_fields_are_all_of_them_in_time(call: Caller) -> None:
    call("MSET", *(word for number in range(8) for word in (f"k{number}", 1)))
    assert {call("RANDOMKEY") for _ in range(300)} == set(call("KEYS", "*"))
    for number in (8, 2000):
        call("DEL", "h")
        call("HSET", "h", *(word for field in range(number) for word in (field, f"v{field}")))
        everything = call("HGETALL", "h")
        few = call("HRANDFIELD", "h", 5, "WITHVALUES")
        assert len({field for field, _ in few}) == 5
        assert all(everything[field] == value for field, value in few)
        assert sorted(call("HRANDFIELD", "h", number)) == sorted(everything)
        assert len(call("HRANDFIELD", "h", -3000)) == 3000
    picked = Counter(call("HRANDFIELD", "h", -20_000))
    assert len(picked) > 1900
