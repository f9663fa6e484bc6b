"""Random commands get the same answers from the store and from a real server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rq.differential import Pair, Words, steps, transactions
from tests.rq.families_a import BLOCKING, HASHES, KEYS, LISTS, STRINGS, WATCHED

_FAMILIES = {
    "strings": st.one_of(STRINGS, STRINGS, KEYS),
    "hashes": st.one_of(HASHES, HASHES, HASHES, KEYS),
    "lists": st.one_of(LISTS, LISTS, LISTS, BLOCKING, KEYS),
    "all": st.one_of(STRINGS, HASHES, LISTS, BLOCKING, KEYS),
}


@pytest.mark.parametrize("family", _FAMILIES)
def test_random_commands_get_the_same_answers(pair: Pair, family: str) -> None:
    @given(taken=steps(_FAMILIES[family]))
    @settings(max_examples=150)
    def compare(taken: list[Words]) -> None:
        pair.reset()
        pair.run(taken)

    compare()


@pytest.mark.parametrize("family", _FAMILIES)
def test_random_transactions_get_the_same_answers(pair: Pair, family: str) -> None:
    commands = _FAMILIES[family]

    @given(taken=steps(commands, transactions(commands, WATCHED), most=15))
    @settings(max_examples=100)
    def compare(taken: list[Words]) -> None:
        pair.reset()
        pair.run(taken)

    compare()
