"""What commands answer, in RESP3's shapes, and the same in RESP2's.

An answer is None, an int, bytes, a list, or one of RESP3's own: a dict, a set (`frozenset` or list
wrapped in `Members`), a float, a bool; `Status` for a simple string; `CommandError` (as a value) inside
of what EXEC answers.
"""

from __future__ import annotations

from typing import Any

Reply = Any


class Status(bytes):
    """A simple string, as +OK is one."""


class Members(list[bytes]):
    """A set, in an order of its own."""


class Scores(list[Any]):
    """Pairs of member and score; one flat list in RESP2."""


class Pairs(list[Any]):
    """A map in an order of its own, as pairs; one flat list in RESP2."""


OK = Status(b"OK")
QUEUED = Status(b"QUEUED")


def format_score(value: float) -> bytes:
    """A float as Redis writes it: 17 digits at most, no trailing zeros, ``inf``, ``-inf``."""
    if value == value and value not in (float("inf"), float("-inf")):
        if value == int(value) and abs(value) < 1e17:
            return b"-0" if value == 0 and str(value)[0] == "-" else b"%d" % int(value)
        return f"{value:.17g}".encode()
    return b"nan" if value != value else (b"inf" if value > 0 else b"-inf")


def to_resp2(reply: Reply) -> Reply:
    """The answer as a client of RESP2 gets it."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return format_score(reply)
    if isinstance(reply, (Scores, Pairs)):
        return [to_resp2(each) for pair in reply for each in pair]
    if isinstance(reply, dict):
        return [to_resp2(each) for pair in reply.items() for each in pair]
    if isinstance(reply, (list, set, frozenset)):
        return [to_resp2(each) for each in reply]
    return reply
