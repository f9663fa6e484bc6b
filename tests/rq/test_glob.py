"""Patterns match what they match in Redis."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equeue_rq._glob import literal_prefix, matcher
from tests.rq.differential import Pair

_PATTERNS = st.lists(
    st.sampled_from([b"*", b"?", b"[", b"]", b"^", b"-", b"\\", b"a", b"b", b"c", b"\xff", b"\n"]),
    max_size=8,
).map(b"".join)
_NAMES = st.lists(st.sampled_from(list(b"abc[]^-\\*?\xff\n")), max_size=5).map(bytes)


@pytest.mark.parametrize("pair", [2], indirect=True)
def test_a_pattern_matches_as_the_servers(pair: Pair) -> None:
    server = pair.servers[0]

    @given(pattern=_PATTERNS, name=_NAMES)
    @example(pattern=b"[a-", name=b"-")
    @example(pattern=b"[a-]", name=b"^")
    @example(pattern=b"[^", name=b"a")
    @example(pattern=b"[]", name=b"a")
    @example(pattern=b"[c-a]*", name=b"b")
    @example(pattern=b"**", name=b"")
    @example(pattern=b"*", name=b"")
    @example(pattern=b"a\\", name=b"a\\")
    @settings(max_examples=600)
    def compare(pattern: bytes, name: bytes) -> None:
        server.call([b"FLUSHALL"])
        server.call([b"SET", name, b"1"])
        wanted = server.call([b"KEYS", pattern]) == [name]
        assert matcher(pattern)(name) is wanted
        assert name.startswith(literal_prefix(pattern)) or not wanted

    compare()


def test_a_pattern_of_many_stars_takes_no_long_time() -> None:
    started = time.monotonic()
    assert not matcher(b"*a" * 50 + b"*b")(b"a" * 20_000)
    assert matcher(b"*a" * 50 + b"*")(b"a" * 20_000)
    assert time.monotonic() - started < 10
