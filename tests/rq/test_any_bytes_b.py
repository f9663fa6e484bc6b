"""Members and entries are any bytes, of any length, whether a key is small or large."""

from __future__ import annotations

import pytest

from tests.rq._helpers import Caller
from tests.rq.test_any_bytes import EVERY_BYTE, NAMES, names

small_and_large = pytest.mark.parametrize("others", [0, 200], ids=["small", "large"])


@names
@small_and_large
def test_a_member_of_a_set_is_any_bytes(call: Caller, name: bytes, others: int) -> None:
    more = {b"member%d" % number for number in range(others)}
    alike = {name, name + b"x", name + b"y" * 500}
    assert call("SADD", "s", *alike, *more) == 3 + others
    assert call("SADD", "s", name) == 0
    assert set(call("SMEMBERS", "s")) == alike | more
    assert set(call.scan_all("SSCAN", "s", 0, cursor_at=2)) == alike | more
    assert call("SMISMEMBER", "s", name, name + b"y", name + b"x") == [1, 0, 1]
    assert set(call("SRANDMEMBER", "s", 1000)) == alike | more
    assert call("SREM", "s", name, name) == 1
    assert call("SMOVE", "s", "t", name + b"x") == 1
    assert call("SMEMBERS", "t") == [name + b"x"]
    assert call("SCARD", "s") == 1 + others


@names
@small_and_large
def test_a_member_of_a_sorted_set_is_any_bytes(call: Caller, name: bytes, others: int) -> None:
    more = [b"member%03d" % number for number in range(others)]
    alike = sorted([name, name + b"\0", name + b"x" * 50, name + b"y" * 500])
    for member in [*reversed(alike), *more]:
        assert call("ZADD", "z", 7, member) == 1
    call("ZADD", "z", 8, "last", 6, "first")
    wanted = [b"first", *sorted([*alike, *more]), b"last"]
    assert call("ZRANGE", "z", 0, -1) == wanted
    assert call("ZREVRANGE", "z", 0, -1) == wanted[::-1]
    for member in alike:
        rank = wanted.index(member)
        assert call("ZRANK", "z", member) == rank
        assert call("ZREVRANK", "z", member) == len(wanted) - 1 - rank
        assert call("ZRANGE", "z", rank, rank) == [member]
        assert call("ZSCORE", "z", member) == 7.0
    scanned = call.scan_all("ZSCAN", "z", 0, cursor_at=2)
    assert sorted(scanned[::2]) == sorted(wanted)
    assert call("ZINCRBY", "z", 2, name) == 9.0
    assert call("ZPOPMAX", "z") == [name, 9.0]
    assert call("ZREM", "z", *alike) == 3
    assert call("ZCARD", "z") == 2 + others


def test_long_members_with_one_score_are_in_order(call: Caller) -> None:
    starts = [b"L" * length for length in (439, 440, 441, 600)]
    ends = [b"", b"\0", b"\0\0", b"L", b"\xff", b"\xff" * 200]
    members = {start + end for start in starts for end in ends}
    for member in members:
        call("ZADD", "z", 0, member)
    order = sorted(members)
    assert call("ZRANGE", "z", 0, -1) == order
    for at, member in enumerate(order):
        assert call("ZRANK", "z", member) == at
        assert call("ZRANGEBYLEX", "z", b"[" + member, "+") == order[at:]
        assert call("ZRANGEBYLEX", "z", b"(" + member, "+") == order[at + 1 :]
        assert call("ZREVRANGEBYLEX", "z", b"[" + member, "-") == order[: at + 1][::-1]
        assert call("ZREVRANGEBYLEX", "z", b"(" + member, "-") == order[:at][::-1]
        assert call("ZLEXCOUNT", "z", "-", b"(" + member) == at


@pytest.mark.parametrize("entries", [3, 40], ids=["small", "large"])
@pytest.mark.parametrize("value", [b"", EVERY_BYTE * 3, b"v" * 100_000], ids=len)
def test_an_entry_of_a_stream_is_any_bytes(call: Caller, value: bytes, entries: int) -> None:
    ids = [b"%d-%d" % (number, number % 3) for number in range(1, entries + 1)]
    for stream_id in ids:
        assert call("XADD", "s", stream_id, value, value, b"x" + value, "1") == stream_id
    fields = [value, value, b"x" + value, b"1"]
    assert call("XRANGE", "s", "-", "+") == [[stream_id, fields] for stream_id in ids]
    assert call("XREVRANGE", "s", "+", "-", "COUNT", 1) == [[ids[-1], fields]]
    assert call("XREAD", "STREAMS", "s", ids[-2]) == [[b"s", [[ids[-1], fields]]]]
    assert call("XDEL", "s", *ids) == entries
    assert call("XRANGE", "s", "-", "+") == []


@names
def test_a_set_of_any_name_is_what_it_is_under_another(call: Caller, name: bytes) -> None:
    assert name in NAMES.values()
    for number in range(100):
        call("SADD", name + b"s", f"member{number}")
        call("ZADD", name + b"z", number, f"member{number}")
        call("XADD", name + b"x", f"{number + 1}-1", "f", "v" * 50)
    for end, read in [
        (b"s", ("SMEMBERS",)),
        (b"z", ("ZRANGE", 0, -1, "WITHSCORES")),
        (b"x", ("XRANGE", "-", "+")),
    ]:
        before = call(read[0], name + end, *read[1:])
        assert len(before) == 100
        call("COPY", name + end, name + b"copy")
        call("RENAME", name + end, name + b"other")
        call("DEL", name + b"other")
        assert call(read[0], name + b"copy", *read[1:]) == before
        call("DEL", name + b"copy")
