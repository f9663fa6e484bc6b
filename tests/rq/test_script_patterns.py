"""Lua's patterns in Lua, for where Lua's own functions would take too long: the answers are the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from lupa import lua51

_HELPERS = b"""
local source, matcher = ...
local own, ours = string, {}
for name, value in pairs(string) do ours[name] = value end
assert(loadstring(source, "=sandbox"))(ours, assert(loadstring(matcher, "=sandbox"))())

local function flat(...)
    local parts = {}
    for at = 1, select("#", ...) do
        local value = select(at, ...)
        parts[at] = type(value) .. ":" .. tostring(value)
    end
    return table.concat(parts, "|")
end

return function(library, name, ...)
    return flat(pcall((library == "own" and own or ours)[name], ...))
end, function(library, code)
    return flat(pcall(loadstring(code), (library == "own" and own or ours).gsub))
end, function(library, ...)
    local parts = {}
    local ok, problem = pcall(function(...)
        for one, two, three in (library == "own" and own or ours).gmatch(...) do
            parts[#parts + 1] = flat(one, two, three)
        end
    end, ...)
    return table.concat(parts, "|") .. tostring(problem)
end
"""

Both = tuple[Callable[..., bytes], Callable[..., bytes], Callable[..., bytes]]


@pytest.fixture(scope="module")
def both() -> Both:
    """What calls a function of Lua's own library, or of ours; what runs code with gsub; what goes through
    gmatch.
    """
    lua = lua51.LuaRuntime(encoding=None, unpack_returned_tuples=True)
    files = resources.files("equeue_rq._lua")
    source, matcher = (
        files.joinpath(name).read_bytes() for name in ("patterns.lua", "matcher.lua")
    )
    always = source.replace(b"local STEPS = 1e9", b"local STEPS = -1")
    assert always != source
    call, run, gmatch = lua.eval(b"loadstring")(_HELPERS)(always, matcher)
    return call, run, gmatch


_SINGLE = rb"a b . %a %d %s [ab] [^a] [a-c] [%d_] %w %. x - %A []a] [^]] %z %% %x".split()
_ODD = rb"( ) () % [ [a %1 %2 %b() %bx %f[%w] %f ^ $".split()
_item = st.one_of(
    st.tuples(st.sampled_from(_SINGLE), st.sampled_from([b"", b"", b"*", b"+", b"-", b"?"])).map(
        b"".join
    ),
    st.sampled_from(_ODD),
)
_group = st.lists(_item, max_size=3).map(lambda items: b"(" + b"".join(items) + b")")
_pattern = st.tuples(
    st.sampled_from([b"", b"", b"^"]),
    st.lists(st.one_of(_item, _item, _group), max_size=5).map(b"".join),
    st.sampled_from([b"", b"", b"$"]),
).map(b"".join)
_text = st.lists(st.sampled_from(b"aabbcx 12_().-%\0\xff"), max_size=12).map(bytes)
_more = st.one_of(
    st.tuples(st.sampled_from([b"find", b"match"])),
    st.tuples(st.sampled_from([b"find", b"match"]), st.integers(-14, 14)),
    st.tuples(st.just(b"gsub"), st.sampled_from([b"<%0%1>", b"%%", b"", b"%2"])),
    st.tuples(st.just(b"gsub"), st.just(b"[%1]"), st.integers(-1, 3)),
)


def _told(answer: bytes) -> bytes:
    """Without the place of an error."""
    return re.sub(rb"(sandbox|\[string[^\]]*\]):\d+: ", b"", answer)


@given(text=_text, pattern=_pattern, more=_more)
@example(text=b"key:1:2", pattern=b"^(.-):(.-):(.*)$", more=(b"find",))
@example(text=b"f(a(b)c)d", pattern=b"%b()", more=(b"match",))
@example(text=b"THE (quick) fox", pattern=b"%f[%a]%a+", more=(b"gsub", b"<%0>"))
@settings(max_examples=1500)
def test_a_pattern_matches_the_same(
    both: Both, text: bytes, pattern: bytes, more: tuple[Any, ...]
) -> None:
    assume(re.search(rb"[\^$*+?.(\[%-]", pattern))  # else it is no pattern to string.find
    call, _, gmatch = both
    name, *arguments = more
    own, ours = (call(which, name, text, pattern, *arguments) for which in (b"own", b"ours"))
    assert _told(ours) == _told(own)
    own, ours = (gmatch(which, text, pattern) for which in (b"own", b"ours"))
    assert _told(ours) == _told(own)


@pytest.mark.parametrize(
    "replacement",
    [
        "{b = 'x', c = 5, a = false}",
        "setmetatable({}, {__index = function(_, key) return key .. '!' end})",
        "function(one, two) return tostring(one) .. tostring(two) end",
        "function() return nil end",
        "function() return {} end",
        "function() error('inside', 0) end",
        "7",
    ],
)
@pytest.mark.parametrize("pattern", ["%w", "(%w)(%w)", "()%w", "%w*", "(%w-)$"])
def test_a_replacement_is_the_same(both: Both, pattern: str, replacement: str) -> None:
    _, run, _ = both
    code = f"return (...)('abc cab', '{pattern}', {replacement})".encode()
    own, ours = (run(which, code) for which in (b"own", b"ours"))
    assert _told(ours) == _told(own)
