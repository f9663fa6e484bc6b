"""What SSCAN, ZSCAN and their kin are told: a cursor, and options."""

from __future__ import annotations

from dataclasses import dataclass

from equeue_rq._commands._table import integer
from equeue_rq._glob import matcher
from equeue_rq._messages import SYNTAX, CommandError

_CURSORS = 1 << 64


def scan_cursor(raw: bytes) -> int:
    """The cursor.

    Raises:
        CommandError: it is none.
    """
    if not raw.isdigit() or len(raw) > 20 or int(raw) >= _CURSORS:
        raise CommandError("ERR invalid cursor")
    return int(raw)


@dataclass(slots=True)
class ScanOptions:
    """What follows the cursor.

    Attributes:
        count: about how many elements are looked at.
        pattern: which ones are wanted; None: all.
    """

    count: int = 10
    pattern: bytes | None = None

    def matches(self, name: bytes) -> bool:
        """Whether this element is wanted."""
        return self.pattern is None or matcher(self.pattern)(name)


def scan_options(args: list[bytes]) -> ScanOptions:
    """The options of the scan of one key. Redis reads them when it has found the key.

    Raises:
        CommandError: there is something else.
    """
    options = ScanOptions()
    for at in range(0, len(args), 2):
        word = args[at].upper()
        if at + 1 == len(args) or word not in (b"MATCH", b"COUNT"):
            raise CommandError(SYNTAX)
        if word == b"MATCH":
            options.pattern = args[at + 1]
            continue
        options.count = integer(args[at + 1])
        if options.count < 1:
            raise CommandError(SYNTAX)
    return options
