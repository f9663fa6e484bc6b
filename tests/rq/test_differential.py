"""Random commands get the same answers from the store and from a real server."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rq.differential import Pair, Words, steps, transactions, without_scans
from tests.rq.families_a import BLOCKING, HASHES, KEYS, LISTS, STRINGS, WATCHED
from tests.rq.families_b import LEXICAL, SCRIPTS, SETS, SORTED_SETS, STREAMS, WATCHED_B

pytestmark = pytest.mark.once

_FAMILIES = {
    "strings": st.one_of(STRINGS, STRINGS, KEYS),
    "hashes": st.one_of(HASHES, HASHES, HASHES, KEYS),
    "lists": st.one_of(LISTS, LISTS, LISTS, BLOCKING, KEYS),
    "sets": SETS,
    "sorted sets": SORTED_SETS,
    "members in order": LEXICAL,
    "streams": STREAMS,
    "scripts": SCRIPTS,
    "all": st.one_of(STRINGS, HASHES, LISTS, SETS, SORTED_SETS, STREAMS, BLOCKING, KEYS),
}
_WATCHED = st.one_of(WATCHED, WATCHED_B)

each_family = pytest.mark.parametrize("family", _FAMILIES)
short_and_long = pytest.mark.parametrize(
    "examples",
    [pytest.param(80, id="short"), pytest.param(5000, marks=pytest.mark.torture, id="long")],
)


@pytest.mark.contract("RQC-02")
@short_and_long
@each_family
def test_random_commands_get_the_same_answers(pair: Pair, family: str, examples: int) -> None:
    @given(taken=steps(_FAMILIES[family]))
    @settings(max_examples=examples)
    def compare(taken: list[Words]) -> None:
        pair.reset()
        pair.run(taken)

    compare()


@pytest.mark.contract("RQC-02")
@short_and_long
@each_family
def test_random_transactions_get_the_same_answers(pair: Pair, family: str, examples: int) -> None:
    commands = _FAMILIES[family]

    @given(taken=steps(commands, transactions(commands, _WATCHED), most=15))
    @settings(max_examples=examples)
    def compare(taken: list[Words]) -> None:
        pair.reset()
        pair.run(taken)

    compare()


@pytest.mark.contract("RQC-02")
@short_and_long
@each_family
def test_random_pipelines_get_the_same_answers(pair: Pair, family: str, examples: int) -> None:
    commands = without_scans(_FAMILIES[family])
    pipeline = steps(commands, transactions(commands, _WATCHED), most=15).map(
        lambda taken: [list(words) for words in taken]  # there is but one client
    )

    @given(pipelines=st.lists(pipeline, min_size=1, max_size=4))
    @settings(max_examples=examples // 2)
    def compare(pipelines: list[list[Words]]) -> None:
        pair.reset()
        pair.run_pipelines(pipelines)

    compare()
