"""What commands answer, in RESP3's shapes, and the same in RESP2's.

An answer is None, an int, bytes, a list, or one of RESP3's own: a dict, a set (`frozenset` or list
wrapped in `Members`), a float, a bool; `Status` for a simple string; `CommandError` (as a value) inside
of what EXEC answers.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

Reply = Any

_INFINITY = math.inf
_INTEGERS = float(1 << 62)
"""Whole numbers up to this are written as integers."""


class Status(bytes):
    """A simple string, as +OK is one."""


class Members(list[bytes]):
    """A set, in an order of its own."""


class Scores(list[Any]):
    """Pairs of member and score; one flat list in RESP2."""


class Pairs(list[Any]):
    """A map in an order of its own, as pairs; one flat list in RESP2."""


class Streams(Pairs):
    """A map in an order of its own, as pairs; they stay pairs in RESP2."""


class Push(list[Any]):
    """What a client gets unasked (RESP3's push); an ordinary list in RESP2."""


OK = Status(b"OK")
QUEUED = Status(b"QUEUED")


def format_score(value: float) -> bytes:
    """A float as Redis writes it since version 7.2: as few digits as tell it from its neighbours."""
    if value != value:
        return b"nan"
    if value in (_INFINITY, -_INFINITY):
        return b"inf" if value > 0 else b"-inf"
    if value == int(value) and abs(value) <= _INTEGERS:
        return b"-0" if value == 0 and math.copysign(1, value) < 0 else b"%d" % int(value)
    negative, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int), "it is a number"
    text = "".join(map(str, digits))
    return (b"-" if negative else b"") + _place_point(text, power).encode()


def _place_point(digits: str, power: int) -> str:
    """Digits with a point or an exponent, whichever Redis prefers."""
    exponent = power + len(digits) - 1
    if power >= 0 and exponent < len(digits) + 7:
        return digits + "0" * power
    if power < 0 and (power > -7 or abs(exponent) < 4):
        digits = digits.rjust(1 - power, "0")
        return f"{digits[:power]}.{digits[power:]}"
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{exponent:+d}"


def to_resp2(reply: Reply) -> Reply:
    """The answer as a client of RESP2 gets it."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return format_score(reply)
    if isinstance(reply, (Scores, Pairs)) and not isinstance(reply, Streams):
        return [to_resp2(each) for pair in reply for each in pair]
    if isinstance(reply, dict):
        return [to_resp2(each) for pair in reply.items() for each in pair]
    if isinstance(reply, (list, set, frozenset)):
        return [to_resp2(each) for each in reply]
    return reply
