"""Answers as redis-py's parser hands them out: decoded if wanted, in the shapes of RESP2 or RESP3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis.connection
from redis._parsers import Encoder

from equeue_rq._messages import CommandError
from equeue_rq._replies import Members, Pairs, Push, Reply, Scores, Status, Streams, format_score

_SETS_ARE_SETS = not hasattr(redis.connection, "ConnectionInterface")
"""redis-py before 5.1 makes a set of RESP3's set; later ones a list."""

Decode = Callable[[bytes], Any]
"""`bytes` itself leaves them as they are, and makes bytes of a `Status`."""
ParseError = Callable[[str], Exception]


class Shaper:
    """Makes what a parser would have made.

    Parameters:
        protocol: 2 or 3.
        encoder: decodes bytes, if its client wants that.
        parse_error: makes redis-py's error of a text.

    Attributes:
        decode: decodes bytes, or leaves them as they are.
    """

    def __init__(self, protocol: int, encoder: Encoder, parse_error: ParseError) -> None:
        self.decode: Decode = encoder.decode if encoder.decode_responses else bytes
        self._parse_error = parse_error
        self._shapes: dict[type, Callable[[Any, Decode], Any]] = {
            list: self._list,
            Push: self._list,
            Members: self._list,
            CommandError: self._error,
        }
        self._shapes |= self._resp3() if protocol == 3 else self._resp2()

    def _resp3(self) -> dict[type, Callable[[Any, Decode], Any]]:
        made: dict[type, Callable[[Any, Decode], Any]] = {
            dict: lambda reply, decode: self._map(reply.items(), decode),
            Pairs: self._map,
            Streams: self._map,
            Scores: self._list,
            tuple: self._list,
        }
        if _SETS_ARE_SETS:
            made[Members] = lambda reply, decode: set(self._list(reply, decode))
        made[set] = made[frozenset] = made.get(Members, self._list)
        return made

    def _resp2(self) -> dict[type, Callable[[Any, Decode], Any]]:
        return {
            bool: lambda reply, decode: int(reply),
            float: lambda reply, decode: decode(format_score(reply)),
            dict: lambda reply, decode: self._flat(reply.items(), decode),
            Pairs: self._flat,
            Scores: self._flat,
            Streams: self._list,
            tuple: self._list,
            set: self._list,
            frozenset: self._list,
        }

    def shape(self, reply: Reply, decode: Decode) -> Any:
        """The answer for the client; errors are values.

        Parameters:
            decode: the client's own `decode`; or ``bytes``: they stay bytes.
        """
        kind = type(reply)
        if kind is bytes or kind is Status:
            return decode(reply)
        shape = self._shapes.get(kind)
        if shape is None:
            if not isinstance(reply, CommandError):
                return reply  # None, an int, or what RESP3 has as it is
            shape = self._error
        return shape(reply, decode)

    def _list(self, reply: Any, decode: Decode) -> Any:
        return [self.shape(each, decode) for each in reply]

    def _flat(self, reply: Any, decode: Decode) -> Any:
        return [self.shape(each, decode) for pair in reply for each in pair]

    def _map(self, reply: Any, decode: Decode) -> Any:
        return {self.shape(key, decode): self.shape(value, decode) for key, value in reply}

    def _error(self, reply: CommandError, decode: Decode) -> Exception:
        return self._parse_error(str(reply))
