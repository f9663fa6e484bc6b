"""Sets, sorted sets and streams: a change writes what it changes, ranges are sought, nothing stays behind."""

from __future__ import annotations

import math

import pytest

from equeue_core.storage import Txn
from equeue_rq._keyspace import ELEMENT, NEXT_ID, Keyspace, Kind
from equeue_rq._types.zset import SortedSet
from tests.rq._helpers import Caller
from tests.rq.test_layout import sweep_all

MANY = 3000


def _fill(call: Caller) -> None:
    call("SADD", "s", *range(MANY))
    call("ZADD", "z", *(word for number in range(MANY) for word in (number // 3, number)))
    for number in range(1, MANY // 10 + 1):
        call("XADD", "x", f"{number}-1", "f", "v" * 30)


def test_a_small_key_has_no_elements_and_no_number(call: Caller) -> None:
    call("SADD", "s", "a", "b")
    call("ZADD", "z", 1, "a", 2, "b")
    call("XADD", "x", "1-1", "f", "v")
    for name in ("s", "z", "x"):
        assert call.record(name).key_id == 0
        call("COPY", name, "copy")
        call("DEL", name, "copy")
    assert call.left_over() == []
    assert call.entries(NEXT_ID) == []


def test_a_change_of_a_large_key_writes_what_it_changes(call: Caller) -> None:
    _fill(call)
    for change, number in [
        (("SADD", "s", "new"), 1),
        (("SREM", "s", "7"), 1),
        (("ZADD", "z", 5, "new"), 2),
        (("ZADD", "z", 2000, "9"), 3),  # its score; where it was; where it is
        (("ZREM", "z", "10"), 2),
        (("XADD", "x", "9999-1", "f", "v"), 1),
        (("XDEL", "x", "5-1"), 1),
        (("SADD", "s", "new"), 0),
        (("ZADD", "z", 5, "new"), 0),
    ]:
        before = set(call.entries(ELEMENT))
        call(*change)
        changed = {key for key, _ in before ^ set(call.entries(ELEMENT))}
        assert len(changed) == number, change
    assert all(len(call.record(name).body) < 100 for name in "szx")


def test_what_changes_nothing_is_no_change(call: Caller) -> None:
    _fill(call)
    stamps = [call.record(name).stamp for name in "szx"]
    call("SADD", "s", 1)
    call("SREM", "s", "nobody")
    call("ZADD", "z", 0, 1)
    call("ZADD", "z", "NX", 5, 1)
    call("ZREM", "z", "nobody")
    call("ZREMRANGEBYSCORE", "z", 10_000, 20_000)
    call("XDEL", "x", "77-7")
    call("XTRIM", "x", "MAXLEN", 10_000)
    assert [call.record(name).stamp for name in "szx"] == stamps


def test_deleted_sets_and_streams_leave_nothing_behind(call: Caller) -> None:
    _fill(call)
    call("DEL", "s")
    call("ZREMRANGEBYRANK", "z", 0, -1)
    call("EXPIRE", "x", -1)
    _fill(call)
    call("SINTERSTORE", "s", "s", "nothing")
    call("ZUNIONSTORE", "z", 1, "nothing")
    call("SET", "x", "text")
    call("DEL", "x")
    assert call("KEYS", "*") == []
    sweep_all(call)
    assert call.left_over() == []


def test_an_empty_key_is_gone_but_not_a_stream(call: Caller) -> None:
    call("SADD", "s", "a")
    call("SPOP", "s")
    call("ZADD", "z", 1, "a")
    call("ZPOPMIN", "z")
    call("XADD", "x", "1-1", "f", "v")
    call("XTRIM", "x", "MAXLEN", 0)
    assert call("EXISTS", "s", "z") == 0
    assert call("XLEN", "x") == 0
    assert call("TYPE", "x") == b"stream"
    assert call("XADD", "x", "1-*", "f", "v") == b"1-2"


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 128, 500])
def test_ranks_are_counted_from_the_nearer_end(call: Caller, size: int) -> None:
    members = [b"member%04d" % number for number in range(size)]
    for at, member in enumerate(members):
        call("ZADD", "z", at, member)
    call("ZADD", "z", 0, b"x" * 2000)  # so that it is not whole
    call("ZREM", "z", b"x" * 2000)
    assert call.record("z").key_id
    for at, member in enumerate(members):
        assert call("ZRANK", "z", member) == at
        assert call("ZREVRANK", "z", member) == size - 1 - at
        assert call("ZRANGE", "z", at, at + 1) == members[at : at + 2]
        assert call("ZREVRANGE", "z", at, at + 1) == members[::-1][at : at + 2]
        assert call("ZCOUNT", "z", at, "+inf") == size - at


def test_the_neighbours_in_the_store_belong_to_no_range(call: Caller) -> None:
    """Elements of keys made before and after lie right beside it."""
    for name in ("before", "z", "after"):
        call("ZADD", name, *(word for number in range(100) for word in (number, f"{name}{number}")))
        call("XADD", f"{name}x", "1-1", "f", "v" * 3000)
    assert len(call("ZRANGE", "z", 0, -1)) == len(call("ZREVRANGE", "z", 0, -1)) == 100
    assert len(call("ZRANGEBYSCORE", "z", "-inf", "+inf")) == 100
    assert len(call("ZREVRANGEBYSCORE", "z", "+inf", "-inf")) == 100
    assert call("ZRANK", "z", "z0") == call("ZREVRANK", "z", "z99") == 0
    assert call("ZPOPMAX", "z", 200) == [[f"z{99 - at}".encode(), 99.0 - at] for at in range(100)]
    assert call("XREVRANGE", "zx", "+", "-") == [[b"1-1", [b"f", b"v" * 3000]]]


def test_picking_from_a_large_key_is_fair(call: Caller) -> None:
    call("SADD", "s", *range(1000))
    call("ZADD", "z", *(word for number in range(1000) for word in (number, number)))
    for command, name in (("SRANDMEMBER", "s"), ("ZRANDMEMBER", "z")):
        picked = {call(command, name) for _ in range(2000)}
        assert 700 < len(picked) < 960  # 865 are to be expected
        some = call(command, name, 100)
        assert len(set(some)) == 100
        assert len(call(command, name, -500)) == 500
    popped = call("SPOP", "s", 400)
    assert len(set(popped)) == 400
    assert call("SCARD", "s") == 600
    assert not set(popped) & set(call("SMEMBERS", "s"))


def test_scores_sort_as_numbers(call: Caller) -> None:
    finite = [-1e300, -2.5, -1e-300, 0.0, 5e-324, 1e-300, 1.5, 3e9, 1e300]
    scores = [-math.inf, *finite, math.inf]
    for score in reversed(scores):
        call("ZADD", "z", repr(score), repr(score), repr(score), b"x" * 900 + repr(score).encode())
    call("ZADD", "z", "-0.0", "zero")
    found = [score for _, score in call("ZRANGE", "z", 0, -1, "WITHSCORES")]
    assert found == sorted([*scores, *scores, 0.0])
    assert call("ZCOUNT", "z", "(0", "inf") == 12
    assert call("ZCOUNT", "z", "-inf", "(-0") == 8
    assert call("ZRANGEBYSCORE", "z", "(1e300", "(inf") == []


def test_a_sorted_set_is_read_within_a_transaction_of_its_own_changes(call: Caller) -> None:
    def change(txn: Txn) -> list[bytes]:
        db = Keyspace(txn, call.session.space, 0, 0, True)
        found = SortedSet(db, db.make(b"z", Kind.ZSET, whole=True))
        for number in range(90):
            found.put(b"member%02d" % number, float(-number), None)
        found.save()
        assert not found.is_whole
        found.put(b"member00", -100.0, 0.0)
        found.remove(b"member89")
        found.save()
        return [member for _, member in found.by_rank(0, 3)]

    assert call.session.space.write(change) == [b"member00", b"member88", b"member87"]
