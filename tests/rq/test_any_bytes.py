"""Keys, fields and values are any bytes, of any length."""

from __future__ import annotations

import pytest

from tests.rq._helpers import Caller

EVERY_BYTE = bytes(range(256))
NAMES = {
    "empty": b"",
    "zero": b"\0",
    "every byte": EVERY_BYTE,
    "longest in a key": b"n" * 400,
    "one more": b"n" * 401,
    "600 bytes": EVERY_BYTE + b"n" * 344,
    "100 kB": b"n" * 100_000,
    "looks hashed": b"#" * 33,
}
VALUES = {"empty": b"", "every byte": EVERY_BYTE * 3, "10 MB": EVERY_BYTE * 40_000}

names = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
values = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


@names
def test_a_key_has_any_name(call: Caller, name: bytes) -> None:
    call("SET", name, "1")
    call("SET", name + b"x", "2")
    call("RPUSH", name + b"y", "a", "b")
    assert call("GET", name) == b"1"
    assert sorted(call("KEYS", "*")) == sorted([name, name + b"x", name + b"y"])
    assert sorted(call.scan_all("SCAN", 0, "COUNT", 1, cursor_at=1)) == sorted(call("KEYS", "*"))
    assert call("RANDOMKEY") in call("KEYS", "*")
    call("PEXPIRE", name, 100_000)
    assert call("RENAME", name, name + b"z") == b"OK"
    assert 0 < call("PTTL", name + b"z") <= 100_000
    assert call("EXISTS", name) == 0
    assert call("COPY", name + b"y", name) == 1
    assert call("LRANGE", name, 0, -1) == [b"a", b"b"]
    assert call("DEL", name, name + b"x", name + b"y", name + b"z") == 4
    assert call("KEYS", "*") == []


@names
def test_a_field_has_any_name(call: Caller, name: bytes) -> None:
    others = {b"field%d" % number: b"v" * 100 for number in range(40)}
    for whole in (True, False):
        expected = {name: b"1", name + b"x": b"L" * 5000}
        call("DEL", "h")
        if not whole:
            expected.update(others)
        for field, value in expected.items():
            assert call("HSET", "h", field, value) == 1
        assert call("HGETALL", "h") == expected
        assert sorted(call("HKEYS", "h")) == sorted(expected)
        flat = call.scan_all("HSCAN", "h", 0, "COUNT", 7, cursor_at=2)
        assert dict(zip(flat[::2], flat[1::2], strict=True)) == expected
        assert call("HINCRBY", "h", name, 41) == 42
        assert call("HGET", "h", name) == b"42"
        assert call("HSTRLEN", "h", name + b"x") == 5000
        assert call("HEXISTS", "h", name + b"y") == 0
        assert call("HDEL", "h", name, name + b"x") == 2
        assert call("HLEN", "h") == (0 if whole else 40)


@values
def test_a_value_is_any_bytes(call: Caller, value: bytes) -> None:
    call("SET", "s", value)
    call("APPEND", "s", "end")
    call("HSET", "h", "small", "1", "f", value, "g", value)
    call("RPUSH", "l", value, "x", value)
    assert call("GET", "s") == value + b"end"
    assert call("STRLEN", "s") == len(value) + 3
    assert call("HGETALL", "h") == {b"small": b"1", b"f": value, b"g": value}
    assert call("LRANGE", "l", 0, -1) == [value, b"x", value]
    assert call("LPOS", "l", value, "COUNT", 0) == [0, 2]
    assert call("LREM", "l", -1, value) == 1
    assert call("RPOPLPUSH", "l", "m") == b"x"
    assert call("LPOP", "l") == value


@pytest.mark.parametrize("length", [511, 512, 513, 1899, 1900, 1901, 2048, 5000])
def test_a_value_that_grows_and_shrinks_is_what_was_set_last(call: Caller, length: int) -> None:
    call("HSET", "h", "a", "1", "f", "x", "b", "2")
    for value in (b"x" * length, b"", b"y" * length, b"y" * length + b"z", b"small"):
        assert call("HSET", "h", "f", value) == 0
        assert call("HGET", "h", "f") == value
        assert call("HGETALL", "h") == {b"a": b"1", b"f": value, b"b": b"2"}
        assert call("HLEN", "h") == 3
    assert call("HDEL", "h", "a", "b", "f") == 3
    assert call("EXISTS", "h") == 0
