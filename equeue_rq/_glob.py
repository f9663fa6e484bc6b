"""Redis's glob patterns, for KEYS, SCAN and PSUBSCRIBE. They are not those of `fnmatch`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_OPEN, _CLOSE, _NOT, _ESCAPE, _TO = b"[]^\\-"


@lru_cache(maxsize=256)
def matcher(pattern: bytes) -> Callable[[bytes], bool]:
    """A function that tells whether a whole name matches.

    ``*`` is any number of bytes, ``?`` is one, ``[a-c]`` one of these, ``[^a-c]`` one of the others;
    a backslash takes the next byte as it is.
    """
    if pattern == b"*":  # matches an empty name as well, which ``**`` does not
        return lambda name: True
    parts = [_compile(part) for part in _parts(pattern)]
    if len(parts) == 1:
        return lambda name: parts[0][0].fullmatch(name) is not None
    (head, _), *middle, (tail, tail_length) = parts

    def matches(name: bytes) -> bool:
        found = head.match(name)
        if found is None:
            return False
        # The first place is the best for each part: so this never has to go back.
        for part, _ in middle:
            found = part.search(name, found.end())
            if found is None:
                return False
        start = len(name) - tail_length
        # Redis does not even look at a pattern when there is nothing to match.
        return bool(name) and start >= found.end() and tail.match(name, start) is not None

    return matches


def literal_prefix(pattern: bytes) -> bytes:
    """What every name that matches starts with."""
    found = re.match(rb"[^*?\[\\]*", pattern)
    assert found is not None
    return found[0]


def _parts(pattern: bytes) -> list[list[bytes]]:
    """The parts between the stars: a regular expression for each byte that they match."""
    parts: list[list[bytes]] = [[]]
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            parts.append([])
        elif byte == b"?":
            parts[-1].append(b".")
        elif byte == b"[":
            expression, at = _one_of(pattern, at + 1)
            parts[-1].append(expression)
        else:
            if byte == b"\\" and at + 1 < len(pattern):
                at += 1
            parts[-1].append(re.escape(pattern[at : at + 1]))
        at += 1
    return parts


def _one_of(pattern: bytes, at: int) -> tuple[bytes, int]:
    """The expression for what follows a bracket, and where it ends. The bracket may stay open."""
    others = pattern[at : at + 1] == b"^"
    at += others
    members: set[int] = set()
    while at < len(pattern) and pattern[at] != _CLOSE:
        left = len(pattern) - at
        if pattern[at] == _ESCAPE and left >= 2:
            at += 1
            members.add(pattern[at])
        elif left >= 3 and pattern[at + 1] == _TO:
            low, high = sorted((pattern[at], pattern[at + 2]))
            members.update(range(low, high + 1))
            at += 2
        else:
            members.add(pattern[at])
        at += 1
    if others:
        members = set(range(256)) - members
    return b"[" + b"".join(b"\\x%02x" % each for each in members) + b"]" if members else b"(?!)", at


def _compile(part: list[bytes]) -> tuple[re.Pattern[bytes], int]:
    return re.compile(b"".join(part), re.DOTALL), len(part)
