"""A command's arguments as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis._parsers import Encoder

Words = list[bytes]


class Packer:
    """Makes words of arguments, as redis-py does before it sends them.

    Parameters:
        encoder: what the connection encodes with; refuses what cannot be encoded.
    """

    __slots__ = ("_encode", "_encoding", "_errors")

    def __init__(self, encoder: Encoder) -> None:
        self._encode: Callable[[Any], bytes] = encoder.encode
        self._encoding = encoder.encoding
        self._errors = encoder.encoding_errors

    def pack(self, args: tuple[Any, ...]) -> Words:
        """The words of one command. The first argument may be several, as in ``CLIENT SETNAME``.

        Raises:
            redis.exceptions.DataError: an argument is neither bytes, nor text, nor a number.
        """
        name = args[0]
        words = name.encode().split() if isinstance(name, str) else bytes(name).split()
        for each in args[1:]:
            kind = type(each)
            if kind is bytes:
                words.append(each)
            elif kind is str:
                words.append(each.encode(self._encoding, self._errors))
            elif kind is int:
                words.append(b"%d" % each)
            else:
                words.append(bytes(self._encode(each)))
        return words
