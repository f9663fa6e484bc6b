"""A change writes what it changes, and what is deleted leaves nothing behind."""

from __future__ import annotations

import pytest

from equeue_rq._keyspace import ELEMENT
from tests.rq._helpers import Caller


def test_a_hash_of_many_fields_is_an_entry_for_each(call: Caller) -> None:
    pairs = [word for number in range(10_000) for word in (f"field{number}", f"value{number}")]
    assert call("HSET", "h", *pairs) == 10_000
    assert call.record("h").body == b""
    before = dict(call.entries(ELEMENT))
    call("HSET", "h", "field77", "changed")
    after = dict(call.entries(ELEMENT))
    assert before.keys() == after.keys()
    assert sum(before[key] != after[key] for key in before) == 1
    assert call("HDEL", "h", *(f"field{number}" for number in range(9_990))) == 9_990
    assert len(call.entries(ELEMENT)) == call("HLEN", "h") == 10


def test_a_jobs_payload_is_not_written_again_with_its_status(call: Caller) -> None:
    fields = [word for number in range(16) for word in (f"field{number}", f"value {number}")]
    call("HSET", "job", *fields, "data", b"\0" * 1_000_000)
    [(key, payload)] = call.entries(ELEMENT)
    for status in ("queued", "started", "finished"):
        call("HSET", "job", "status", status)
    assert len(call.record("job").body) < 1000
    assert call.entries(ELEMENT) == [(key, payload)]
    assert payload == b"\0" * 1_000_000


def test_a_small_hash_keeps_the_order_of_its_fields(call: Caller) -> None:
    call("HSET", "h", "z", 1, "a", 2, "m", b"L" * 1000)
    call("HSET", "h", "z", 3, "b", 4)
    assert call("HKEYS", "h") == [b"z", b"a", b"m", b"b"]
    assert call("HVALS", "h") == [b"3", b"2", b"L" * 1000, b"4"]


def test_a_list_is_an_entry_for_each(call: Caller) -> None:
    call("RPUSH", "l", *range(1000))
    before = call.entries(ELEMENT)
    assert len(before) == 1000
    call("RPUSH", "l", "last")
    call("LPUSH", "l", "first")
    assert call.entries(ELEMENT)[1:-1] == before


@pytest.mark.parametrize("kept", [0, 1, 90, 150, 200])
@pytest.mark.parametrize("start", [0, 1, 60])
def test_a_trimmed_list_keeps_its_range_and_its_expiry(call: Caller, start: int, kept: int) -> None:
    values = [b"%d" % number for number in range(300)]
    call("RPUSH", "l", *values)
    call("LREM", "l", 1, 70)
    values.remove(b"70")
    call("PEXPIREAT", "l", 4102444800000)
    call("LTRIM", "l", start, start + kept - 1 if kept else -400)
    wanted = values[start : start + kept]
    assert call("LRANGE", "l", 0, -1) == wanted
    assert call("PEXPIRETIME", "l") == (4102444800000 if kept else -2)
    assert call("LLEN", "l") == kept
    call("RPUSH", "l", "end")
    call("LPUSH", "l", "start")
    assert call("LRANGE", "l", 0, -1) == [b"start", *wanted, b"end"]
    call("DEL", "l")
    sweep_all(call)
    assert call.left_over() == []


def test_deleted_keys_leave_nothing_behind(call: Caller) -> None:
    pairs = [word for number in range(500) for word in (number, "v" * 20)]
    for name, how in [
        ("a", "DEL"),
        ("b", "UNLINK"),
        ("c", "SET"),
        ("d", "RENAME"),
        ("e", "EXPIRE"),
    ]:
        call("HSET", name, *pairs)
        call("EXPIRE", name, 1000)
        call("RPUSH", name + "l", *range(300))
        more = {"SET": ["x"], "RENAME": ["other"], "EXPIRE": [-1]}.get(how, [])
        call(how, name, *more)
        call(how, name + "l", *more)
    call("SET", "other", "x")
    call("DEL", "c", "cl", "other")
    assert call("KEYS", "*") == []
    sweep_all(call)
    assert call.left_over() == []


def test_each_type_replaces_the_other(call: Caller) -> None:
    call("RPUSH", "k", *range(100))
    call("SET", "k", "string")
    call("DEL", "k")
    call("HSET", "k", "f", b"L" * 1000)
    call("COPY", "k", "copy")
    call("HSET", "copy", "f", b"M" * 1000)
    assert call("HGET", "k", "f") == b"L" * 1000
    call("RPUSH", "l", 1)
    call("RENAME", "l", "k")
    assert call("LRANGE", "k", 0, -1) == [b"1"]
    call("DEL", "copy")
    sweep_all(call)
    assert [value for _, value in call.entries(ELEMENT)] == [b"1"]


def sweep_all(call: Caller) -> None:
    """Write often enough for all that is left to be removed."""
    for _ in range(200):
        call("SET", "sweeping", "x")
    call("DEL", "sweeping")
