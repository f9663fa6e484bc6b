"""INCRBYFLOAT and HINCRBYFLOAT compute with the server's 64 bits, and write its digits."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.rq.differential import Pair

_DIGITS = st.text("0123456789", max_size=20)
_DECIMALS = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}.{fraction}{exponent}".encode(),
    st.sampled_from(["", "", "-", "+"]),
    _DIGITS,
    _DIGITS,
    st.one_of(st.just(""), st.integers(-60, 60).map(lambda power: f"e{power}")),
)
_NUMBERS = st.one_of(
    _DECIMALS,
    st.integers(-(10**25), 10**25).map(lambda number: b"%d" % number),
    st.floats(-1e6, 1e6).map(lambda number: repr(number).encode()),
    st.sampled_from([b"inf", b"-Inf", b"nan", b"", b".", b"1e", b"1_0", b"1e-4950", b"1e-4960"]),
)


@pytest.mark.parametrize("pair", [2], indirect=True)
def test_a_sum_is_the_servers_to_the_last_digit(pair: Pair) -> None:
    @given(old=_NUMBERS, by=_NUMBERS)
    @example(old=b"3.0", by=b"5e-17")
    @example(old=b"1", by=b"4.9999999999999999999e-18")
    @example(old=b"0.1", by=b"0.2")
    @example(old=b"-1", by=b"1")
    @example(old=b"1e3900", by=b"-1e3900")
    @example(old=b"inf", by=b"-inf")
    @example(old=b"9" * 30, by=b"1e0000000000000000000005")
    @settings(max_examples=400)
    def compare(old: bytes, by: bytes) -> None:
        pair.reset()
        pair.run([[b"SET", b"k", old], [b"INCRBYFLOAT", b"k", by]])
        pair.run([[b"HSET", b"h", b"f", old], [b"HINCRBYFLOAT", b"h", b"f", by]])

    compare()
