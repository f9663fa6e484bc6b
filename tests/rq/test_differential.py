"""Random commands get the same answers from the store and from a real server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rq.differential import Pair, Words
from tests.rq.families_a import HASHES, KEYS, LISTS, STRINGS

_FAMILIES = {
    "strings": st.one_of(STRINGS, STRINGS, KEYS),
    "hashes": st.one_of(HASHES, HASHES, HASHES, KEYS),
    "lists": st.one_of(LISTS, LISTS, LISTS, KEYS),
    "all": st.one_of(STRINGS, HASHES, LISTS, KEYS),
}


@pytest.mark.parametrize("family", _FAMILIES)
def test_random_commands_get_the_same_answers(pair: Pair, family: str) -> None:
    @given(steps=st.lists(_FAMILIES[family], min_size=1, max_size=40))
    @settings(max_examples=150)
    def compare(steps: list[Words]) -> None:
        pair.reset()
        pair.run(steps)

    compare()
