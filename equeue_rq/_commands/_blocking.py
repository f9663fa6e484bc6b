"""How long a blocking command waits."""

from __future__ import annotations

from equeue_rq._commands._table import integer, number
from equeue_rq._messages import CommandError

_MAX = (1 << 63) - 1
_NEGATIVE = "ERR timeout is negative"


def seconds(raw: bytes) -> float:
    """A timeout in seconds, with fractions; 0: for ever.

    Raises:
        CommandError: it is none.
    """
    timeout = number(raw, "ERR timeout is not a float or out of range")
    if timeout < 0:
        raise CommandError(_NEGATIVE)
    if timeout * 1000 > _MAX:
        raise CommandError("ERR timeout is out of range")
    return timeout


def milliseconds(raw: bytes) -> float:
    """The seconds of a timeout in whole milliseconds; 0: for ever.

    Raises:
        CommandError: it is none.
    """
    timeout = integer(raw, "ERR timeout is not an integer or out of range")
    if timeout < 0:
        raise CommandError(_NEGATIVE)
    return timeout / 1000
