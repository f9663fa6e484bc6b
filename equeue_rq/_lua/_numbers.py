"""What Lua's libraries for scripts leave to Python: operations on bits, packed numbers, random ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import reduce
from typing import Literal

Number = int | float

_MASK = 0xFFFFFFFF


def _bits(value: Number | bytes) -> int:
    """A number's lowest 32 bits."""
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return 0
    return round(number) & _MASK


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


def _rotated(value: int, by: int) -> int:
    by &= 31
    return value << by | value >> (32 - by)


_OPERATIONS: dict[bytes, Callable[[list[int]], int]] = {
    b"tobit": lambda args: args[0],
    b"bnot": lambda args: ~args[0],
    b"band": lambda args: reduce(int.__and__, args),
    b"bor": lambda args: reduce(int.__or__, args),
    b"bxor": lambda args: reduce(int.__xor__, args),
    b"lshift": lambda args: args[0] << (args[1] & 31),
    b"rshift": lambda args: args[0] >> (args[1] & 31),
    b"arshift": lambda args: _signed(args[0]) >> (args[1] & 31),
    b"rol": lambda args: _rotated(args[0], args[1]),
    b"ror": lambda args: _rotated(args[0], -args[1]),
    b"bswap": lambda args: int.from_bytes(args[0].to_bytes(4, "little"), "big"),
}


def bit(name: bytes, *values: Number | bytes) -> int | bytes:
    """The result of an operation on 32 bits, signed; of ``tohex``, the digits."""
    numbers = [_bits(value) for value in values]
    if name == b"tohex":
        wanted = _signed(numbers[1]) if len(numbers) > 1 else 8
        digits = b"%08x" % numbers[0] if wanted > 0 else b"%08X" % numbers[0]
        return digits[8 - min(8, abs(wanted)) :]
    return _signed(_OPERATIONS[name](numbers))


def pack(layout: bytes, value: Number) -> bytes:
    """A number as `struct.pack` has it."""
    return struct.pack(layout.decode(), value if layout[-1:] in b"fd" else int(value))


def unpack(layout: bytes, raw: bytes) -> Number:
    """The number that these bytes stand for."""
    (value,) = struct.unpack(layout.decode(), raw)
    return float(value) if layout[-1:] in b"fd" else int(value)


def pack_float(value: float) -> bytes:
    """A float as MessagePack has it: in four bytes if nothing is lost."""
    try:
        short = struct.pack(">f", value)
    except OverflowError:
        return b"\xcb" + struct.pack(">d", value)
    if value != value or struct.unpack(">f", short)[0] == value:
        return b"\xca" + short
    return b"\xcb" + struct.pack(">d", value)


def pack_sized(layout: bytes, size: int, value: Number) -> bytes:
    """A number as the struct library has it: byte order, kind, and how many bytes."""
    if layout[-1:] in b"fd":
        return struct.pack(layout.decode(), value)
    return (int(value) % (1 << 8 * size)).to_bytes(size, _order(layout))


def unpack_sized(layout: bytes, size: int, raw: bytes) -> Number:
    """The number that these bytes stand for."""
    if layout[-1:] in b"fd":
        return float(struct.unpack(layout.decode(), raw)[0])
    return float(int.from_bytes(raw, _order(layout), signed=layout[-1:].islower()))


def _order(layout: bytes) -> Literal["big", "little"]:
    return "big" if layout[:1] == b">" else "little"


class Random:
    """Redis's generator for scripts, that of ``lrand48``. A script starts with the same seed each time."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, value: Number) -> None:
        """Start again; the seed's lowest 32 bits count."""
        self._state = (int(value) & _MASK) << 16 | 0x330E

    def __call__(self) -> int:
        """The next number, below 2**31 - 1."""
        self._state = (self._state * 0x5DEECE66D + 0xB) & 0xFFFFFFFFFFFF
        return (self._state >> 17) % 0x7FFFFFFF
