"""A command's arguments as bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from redis._parsers import Encoder

Words = list[bytes]


class _Encoders(dict[type, Callable[[Any], bytes]]):
    """How to encode each type of argument. The encoder itself has to do with all others, or refuses them."""

    def __init__(self, encoder: Encoder) -> None:
        self._encode: Callable[[Any], bytes] = encoder.encode
        text: Callable[[str], bytes] = str.encode
        if (encoder.encoding, encoder.encoding_errors) != ("utf-8", "strict"):
            text = partial(_encode_text, encoder.encoding, encoder.encoding_errors)
        self.update({bytes: bytes, str: text, int: b"%d".__mod__})

    def __missing__(self, kind: type) -> Callable[[Any], bytes]:
        return self._other

    def _other(self, value: Any) -> bytes:
        return bytes(self._encode(value))


def _encode_text(encoding: str, errors: str, text: str) -> bytes:
    return text.encode(encoding, errors)


@lru_cache(maxsize=1024)
def _split(name: str) -> tuple[bytes, ...]:
    return tuple(name.encode().split())


class Packer:
    """Makes words of arguments, as redis-py does before it sends them.

    Parameters:
        encoder: what the connection encodes with; refuses what cannot be encoded.
    """

    __slots__ = ("_encoders",)

    def __init__(self, encoder: Encoder) -> None:
        self._encoders = _Encoders(encoder)

    def pack(self, args: tuple[Any, ...]) -> Words:
        """The words of one command. The first argument may be several, as in ``CLIENT SETNAME``.

        Raises:
            redis.exceptions.DataError: an argument is neither bytes, nor text, nor a number.
        """
        name = args[0]
        encoders = self._encoders
        words = [encoders[type(each)](each) for each in args[1:]]
        return [*(_split(name) if isinstance(name, str) else bytes(name).split()), *words]
