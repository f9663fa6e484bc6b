"""Which part of a sorted set is meant: by rank, by score or by member, and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from equeue_rq._commands._table import integer
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._types.zset import FIRST, Cut, Entry, SortedSet, before_score, behind_score

NOT_A_SCORE = "ERR min or max is not a float"
NOT_A_MEMBER = "ERR min or max not valid string range item"

RANK, SCORE, LEX = b"BYRANK", b"BYSCORE", b"BYLEX"


@dataclass(slots=True)
class ScoreRange:
    """From one score to another."""

    low: Cut
    high: Cut

    @classmethod
    def parse(cls, low: bytes, high: bytes) -> ScoreRange:
        """The range between two scores as they are written, with ``(`` if they are not part of it.

        Raises:
            CommandError: one of them is none.
        """
        (score, without), (end, without_end) = _score(low), _score(high)
        return cls(
            behind_score(score) if without else before_score(score),
            before_score(end) if without_end else behind_score(end),
        )

    def cuts(self, found: SortedSet) -> tuple[Cut, Cut]:
        """Where it begins and ends in a sorted set."""
        return self.low, self.high


@dataclass(slots=True)
class LexRange:
    """From one member to another, among members that have all the same score."""

    low: bytes
    high: bytes

    @classmethod
    def parse(cls, low: bytes, high: bytes) -> LexRange:
        """The range between two members as they are written: behind ``[`` or ``(``, or ``-`` or ``+``.

        Raises:
            CommandError: one of them is none.
        """
        for item in (low, high):
            if item[:1] not in (b"[", b"(") and item not in (b"-", b"+"):
                raise CommandError(NOT_A_MEMBER)
        return cls(low, high)

    def cuts(self, found: SortedSet) -> tuple[Cut, Cut]:
        """Where it begins and ends in a sorted set."""
        ((score, _),) = found.by_rank(0, 1)
        return self._cut(score, self.low, b"("), self._cut(score, self.high, b"[")

    @staticmethod
    def _cut(score: float, item: bytes, behind: bytes) -> Cut:
        if item in (b"-", b"+"):
            return FIRST if item == b"-" else None
        return score, item[1:] + (b"\0" if item[:1] == behind else b"")


@dataclass(slots=True)
class RankRange:
    """From one rank to another, both included; negative ones count from the end."""

    start: int
    stop: int

    @classmethod
    def parse(cls, start: bytes, stop: bytes) -> RankRange:
        """The range between two ranks.

        Raises:
            CommandError: one of them is none.
        """
        return cls(integer(start), integer(stop))

    def entries(self, found: SortedSet, backwards: bool = False) -> list[Entry]:
        """What is in this part of a sorted set."""
        size = len(found)
        start = max(0, self.start + size if self.start < 0 else self.start)
        stop = min(size, (self.stop + size if self.stop < 0 else self.stop) + 1)
        if not backwards:
            return found.by_rank(start, stop)
        return found.by_rank(size - stop, size - start)[::-1] if start < stop else []


Range = ScoreRange | LexRange | RankRange


def entries_in(found: SortedSet, part: Range) -> list[Entry]:
    """What is in a part of a sorted set."""
    if isinstance(part, RankRange):
        return part.entries(found)
    return list(found.between(*part.cuts(found)))


@dataclass(slots=True)
class Selection:
    """What ZRANGE and its kin are told.

    Attributes:
        by: `RANK`, `SCORE` or `LEX`.
        backwards: from the last to the first.
        with_scores: with the scores.
        offset, limit: how many of a range are left out at first, and how many are wanted; -1: all.
    """

    by: bytes = RANK
    backwards: bool = False
    with_scores: bool = False
    offset: int = 0
    limit: int = -1
    part: Range = field(init=False)

    def entries(self, found: SortedSet) -> list[Entry]:
        """What is selected from a sorted set."""
        if isinstance(self.part, RankRange):
            return self.part.entries(found, self.backwards)
        if self.offset < 0 or self.limit == 0:
            return []
        low, high = self.part.cuts(found)
        walk: Iterator[Entry] = (found.reversed if self.backwards else found.between)(low, high)
        # Both are 64-bit integers, and their sum is none that `islice` takes.
        walk = islice(walk, self.offset, None)
        return list(walk if self.limit < 0 else islice(walk, self.limit))

    def read(self, args: list[bytes], allowed: frozenset[bytes]) -> None:
        """Take in the two ends, and the options behind them.

        Raises:
            CommandError: they make no sense, or are not among those that are allowed.
        """
        self._read_options(args[2:], allowed)
        if self.limit != -1 and self.by == RANK:
            raise CommandError(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
            )
        if self.with_scores and self.by == LEX:
            raise CommandError(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
            )
        low, high = args[:2]
        if self.by == RANK:
            self.part = RankRange.parse(low, high)
            return
        if self.backwards:
            low, high = high, low
        self.part = (ScoreRange if self.by == SCORE else LexRange).parse(low, high)

    def _read_options(self, args: list[bytes], allowed: frozenset[bytes]) -> None:
        words = iter(args)
        for raw in words:
            word = raw.upper()
            if word not in allowed:
                raise CommandError(SYNTAX)
            if word == b"WITHSCORES":
                self.with_scores = True
            elif word == b"REV":
                self.backwards = True
                allowed = allowed - {word}
            elif word == b"LIMIT":
                numbers = list(islice(words, 2))
                if len(numbers) < 2:
                    raise CommandError(SYNTAX)
                self.offset, self.limit = map(integer, numbers)
            else:
                self.by = word
                allowed = allowed - {SCORE, LEX}


def _score(raw: bytes) -> tuple[float, bool]:
    """A score, and whether it is itself left out."""
    without = raw[:1] == b"("
    text = raw[1:] if without else raw
    try:
        if text[-1:].isspace() or b"_" in text:
            raise ValueError
        score = float(text) if text else 0.0
    except ValueError:
        raise CommandError(NOT_A_SCORE) from None
    if score != score:
        raise CommandError(NOT_A_SCORE)
    return score, without
