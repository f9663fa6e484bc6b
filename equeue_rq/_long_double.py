"""Sums as Redis makes them for INCRBYFLOAT and HINCRBYFLOAT: in the 80-bit numbers of x86.

A Python float has 53 bits, these have 64, and the texts of the results differ: 3.0 + 5e-17 does.
"""

from __future__ import annotations

import re

_BITS = 64
_LOWEST = -16445
"""The exponent of the lowest bit of the smallest numbers."""
_TOO_LARGE = 10**4000
"""Redis goes up to 1e4932, but Python makes no text of so large a number."""
_DIGITS = 17
"""Decimals in a text."""
_MAX_TEXT = 4000
"""Bytes of the longest text that is read."""

_DECIMAL = re.compile(rb"([+-]?)(?:(\d+)\.?(\d*)|\.(\d+))(?:[eE]([+-]?\d+))?")
_INFINITE = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)

Number = tuple[int, int]
"""A mantissa and the exponent of 2 that it is multiplied with."""

_INFINITY: Number = (1, 1 << 16)
_MINUS_INFINITY: Number = (-1, 1 << 17)
"""So large that no sum with them is finite."""


def parse(raw: bytes) -> Number | None:
    """The number that is nearest to a decimal text, which may be infinite; None if the text is none, or
    the number too large, or too near to 0.
    """
    if len(raw) > _MAX_TEXT:
        return None
    found = _DECIMAL.fullmatch(raw)
    if found is None:
        if _INFINITE.fullmatch(raw):
            return _MINUS_INFINITY if raw[:1] == b"-" else _INFINITY
        return None
    sign, whole, fraction, only_fraction, exponent = (part or b"" for part in found.groups())
    fraction = fraction or only_fraction
    digits = int(whole + fraction)
    if not digits:
        return 0, 0
    power = int(exponent or b"0") - len(fraction)
    if abs(power) > 2 * _MAX_TEXT:  # beyond all numbers, and too much to compute
        return None
    scale = 10 ** abs(power)
    number = _nearest(digits * scale, 1) if power >= 0 else _nearest(digits, scale)
    if not number[0] or is_infinite(number):
        return None
    return (-number[0], number[1]) if sign == b"-" else number


def add(one: Number, other: Number) -> Number | None:
    """The sum, rounded; None if it is infinite, or as good as that."""
    exponent = min(one[1], other[1])
    mantissa = (one[0] << (one[1] - exponent)) + (other[0] << (other[1] - exponent))
    if exponent >= 0:
        number = _nearest(abs(mantissa) << exponent, 1)
    else:
        number = _nearest(abs(mantissa), 1 << -exponent)
    if is_infinite(number):
        return None
    return (-number[0], number[1]) if mantissa < 0 else number


def text(number: Number) -> bytes:
    """The number with 17 decimals, less the zeros at the end."""
    mantissa, exponent = number
    if exponent >= 0:
        return b"%d" % (mantissa << exponent)
    scaled = _divide(abs(mantissa) * 10**_DIGITS, 1 << -exponent)
    digits = b"%0*d" % (_DIGITS + 1, scaled)
    whole, fraction = digits[:-_DIGITS], digits[-_DIGITS:].rstrip(b"0")
    return (
        (b"-" if mantissa < 0 and scaled else b"") + whole + (b"." + fraction if fraction else b"")
    )


def _nearest(numerator: int, denominator: int) -> Number:
    """The number nearest to a positive fraction."""
    exponent = max(numerator.bit_length() - denominator.bit_length() - _BITS, _LOWEST)
    while True:
        if exponent >= 0:
            mantissa = _divide(numerator, denominator << exponent)
        else:
            mantissa = _divide(numerator << -exponent, denominator)
        if mantissa.bit_length() <= _BITS:
            return mantissa, exponent
        exponent += 1


def _divide(numerator: int, denominator: int) -> int:
    """The quotient, rounded to the nearest, halves to the even one."""
    quotient, rest = divmod(numerator, denominator)
    twice = 2 * rest
    return quotient + (twice > denominator or (twice == denominator and quotient & 1))


def is_infinite(number: Number) -> bool:
    """Whether it is too large to be a number."""
    mantissa, exponent = number
    return exponent > 0 and abs(mantissa) << exponent >= _TOO_LARGE
