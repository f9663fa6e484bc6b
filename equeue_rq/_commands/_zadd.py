"""The options of ZADD."""

from __future__ import annotations

from dataclasses import dataclass

from equeue_rq._messages import SYNTAX, CommandError


@dataclass(slots=True)
class ZAddOptions:
    """What stands between key and scores.

    Attributes:
        nx, xx: only new members; only those that are there.
        gt, lt: change a score only to a greater one; to a smaller one.
        ch: answer how many changed, not how many are new.
        incr: add to the score of one member.
    """

    nx: bool = False
    xx: bool = False
    gt: bool = False
    lt: bool = False
    ch: bool = False
    incr: bool = False

    def allow(self, old: float | None, score: float) -> bool:
        """Whether a member may get this score instead of the old one (None: it is none yet)."""
        if old is None:
            return not self.xx
        return not (self.nx or (self.gt and score <= old) or (self.lt and score >= old))


_OPTIONS = {b"NX": "nx", b"XX": "xx", b"GT": "gt", b"LT": "lt", b"CH": "ch", b"INCR": "incr"}


def zadd_options(args: list[bytes]) -> tuple[ZAddOptions, list[bytes]]:
    """The options, and the scores and members behind them.

    Raises:
        CommandError: they do not go together.
    """
    options = ZAddOptions()
    at = 0
    while at < len(args) and (name := _OPTIONS.get(args[at].upper())):
        setattr(options, name, True)
        at += 1
    rest = args[at:]
    if not rest or len(rest) % 2:
        raise CommandError(SYNTAX)
    if options.nx and options.xx:
        raise CommandError("ERR XX and NX options at the same time are not compatible")
    if options.nx + options.gt + options.lt > 1:
        raise CommandError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if options.incr and len(rest) > 2:
        raise CommandError("ERR INCR option supports a single increment-element pair")
    return options, rest
