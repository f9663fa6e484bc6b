"""Between Redis's answers and Lua's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equeue_rq._messages import CommandError
from equeue_rq._replies import Members, Pairs, Reply, Scores, Status, format_score, to_resp2

_LEAST_INTEGER = -(1 << 63)
"""What C makes of a number that is no 64-bit integer."""

MakeTable = Callable[[Any], Any]
"""Makes a Lua table of a list or a dict."""

# Into Lua


def argument(value: bytes | float) -> bytes:
    """What a command gets for a string or a number in Lua."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    return format_score(value) if value == value else b"-nan"


def to_lua(reply: Reply, make: MakeTable, resp: int) -> Any:
    """An answer as a function gives it to Lua: a value, or ``True`` and what it means (a text, and whether
    that is a status or an error).
    """
    if type(reply) is bytes or type(reply) is int:
        return reply
    if reply is None:
        return False if resp == 2 else None
    if isinstance(reply, Status):
        return True, bytes(reply), True
    if isinstance(reply, CommandError):
        return True, error_text(reply), False
    return _item(reply if resp == 3 else to_resp2(reply), make, resp)


def error_text(error: CommandError) -> bytes:
    """The text of a refusal."""
    return str(error).encode("utf-8", "surrogateescape")


def _item(reply: Reply, make: MakeTable, resp: int) -> Any:
    """The same where it is part of a table, or can be no text."""
    if isinstance(reply, Status):
        return make({b"ok": bytes(reply)})
    if isinstance(reply, bytes):
        return reply
    if isinstance(reply, (bool, int)):
        return int(reply)
    if reply is None:
        return False if resp == 2 else None
    if isinstance(reply, float):
        return make({b"double": reply})
    if isinstance(reply, CommandError):
        return make({b"err": error_text(reply)})
    if isinstance(reply, (dict, Pairs)):
        pairs = reply.items() if isinstance(reply, dict) else reply
        return make({b"map": make({key: _item(value, make, resp) for key, value in pairs})})
    if isinstance(reply, (Members, set, frozenset)):
        return make({b"set": make(dict.fromkeys(reply, True))})
    return make([_item(each, make, resp) for each in reply])


def size(reply: Reply) -> int:
    """About how many bytes an answer takes in Lua."""
    if isinstance(reply, bytes):
        return 64 + len(reply)
    if isinstance(reply, dict):
        return 128 + sum(size(key) + size(value) for key, value in reply.items())
    if isinstance(reply, (list, set, frozenset)):
        return 128 + sum(map(size, reply))
    return 192 if isinstance(reply, (float, Scores, CommandError)) else 64


# Out of Lua


def integer(value: float) -> int:
    """A number as C casts it to an integer."""
    try:
        number = int(value)
    except (OverflowError, ValueError):
        return _LEAST_INTEGER
    return number if _LEAST_INTEGER <= number < -_LEAST_INTEGER else _LEAST_INTEGER


def plain_reply(value: bytes | float | bool | None, resp: int) -> Reply:
    """The answer for what a script returns, if that is no table."""
    if value is True or value is False:
        return value if resp == 3 else 1 if value else None
    return integer(value) if isinstance(value, (int, float)) else value


class Decoder:
    """Reads the text in which the sandbox writes a table that a script returns."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    def read(self) -> Reply:
        """The next value."""
        mark = self._text[self._at : self._at + 1]
        self._at += 1
        if mark in b"_tf":
            return {b"_": None, b"t": 1, b"f": False}[mark]
        head = self._line()
        if mark == b":":
            return integer(float(head))
        if mark == b",":
            return float(head)
        number = int(head)
        if mark in b"*%~":
            return self._many(mark, number)
        body = self._text[self._at : self._at + number]
        self._at += number
        return self._sized(mark, body)

    def _line(self) -> bytes:
        stop = self._text.index(b"\n", self._at)
        line = self._text[self._at : stop]
        self._at = stop + 1
        return line

    def _many(self, mark: bytes, number: int) -> Reply:
        if mark == b"%":
            return Pairs([self.read(), self.read()] for _ in range(number))
        values = [self.read() for _ in range(number)]
        return Members(values) if mark == b"~" else values

    @staticmethod
    def _sized(mark: bytes, body: bytes) -> Reply:
        if mark == b"$":
            return body
        if mark == b"(":
            return int(body) if body.lstrip(b"-").isdigit() else body
        text = body.replace(b"\r", b" ").replace(b"\n", b" ")
        return Status(text) if mark == b"+" else CommandError(text.decode("utf-8", "replace"))
