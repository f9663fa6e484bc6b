"""What SCAN, SSCAN, ZSCAN and HSCAN are told: a cursor, and options."""

from __future__ import annotations

from dataclasses import dataclass

from equeue_rq._commands._table import integer
from equeue_rq._glob import matcher
from equeue_rq._keyspace import Kind
from equeue_rq._messages import SYNTAX, CommandError

INVALID_CURSOR = "ERR invalid cursor"

KINDS = {kind.name.lower().encode(): kind for kind in Kind}
"""The types by the names that TYPE has for them."""

_CURSORS = 1 << 64


def scan_cursor(raw: bytes) -> int:
    """The cursor.

    Raises:
        CommandError: it is none.
    """
    if not raw.isdigit() or len(raw) > 20 or int(raw) >= _CURSORS:
        raise CommandError(INVALID_CURSOR)
    return int(raw)


@dataclass(slots=True)
class ScanOptions:
    """What follows the cursor.

    Attributes:
        count: about how many elements are looked at.
        pattern: which ones are wanted; None: all.
        kind: which type is wanted; None: all.
        values: whether the values are wanted.
    """

    count: int = 10
    pattern: bytes | None = None
    kind: Kind | None = None
    values: bool = True

    def matches(self, name: bytes) -> bool:
        """Whether this element is wanted."""
        return self.pattern is None or matcher(self.pattern)(name)


def scan_options(args: list[bytes], *more: bytes) -> ScanOptions:
    """The options of a scan. Redis reads those of the scan of one key when it has found the key.

    Parameters:
        args: what follows the cursor.
        more: TYPE or NOVALUES, where they are allowed besides MATCH and COUNT.

    Raises:
        CommandError: there is something else.
    """
    options = ScanOptions()
    words = iter(args)
    for given in words:
        word = given.upper()
        if word not in (b"MATCH", b"COUNT", *more):
            raise CommandError(SYNTAX)
        if word == b"NOVALUES":
            options.values = False
            continue
        value = next(words, None)
        if value is None:
            raise CommandError(SYNTAX)
        if word == b"MATCH":
            options.pattern = value
        elif word == b"TYPE":
            options.kind = _kind(value)
        else:
            options.count = integer(value)
            if options.count < 1:
                raise CommandError(SYNTAX)
    return options


def _kind(name: bytes) -> Kind:
    kind = KINDS.get(name.lower())
    if kind is None:
        raise CommandError(f"ERR unknown type name '{name.decode(errors='replace')}'")
    return kind
