"""Commands of sorted sets: ranges by rank, score and member."""

from __future__ import annotations

from equeue_rq._commands._table import ONE, Call, command
from equeue_rq._commands._zranges import (
    LEX,
    RANK,
    SCORE,
    LexRange,
    Range,
    RankRange,
    ScoreRange,
    Selection,
    entries_in,
)
from equeue_rq._commands.sorted_sets import entries
from equeue_rq._replies import Reply
from equeue_rq._types.zset import SortedSet

_LIMIT = frozenset((b"WITHSCORES", b"LIMIT"))
_STORED = frozenset((b"LIMIT", b"REV", SCORE, LEX))
_ANY = _LIMIT | _STORED


def _select(call: Call, selection: Selection, allowed: frozenset[bytes]) -> Reply:
    selection.read(call.args[1:], allowed)
    found = SortedSet.find(call.db, call.args[0])
    return entries([] if found is None else selection.entries(found), selection.with_scores)


@command("ZRANGE", -4, "readonly", keys=ONE)
def zrange(call: Call) -> Reply:
    """Get a part of a sorted set: by ranks, scores or members, from either end."""
    return _select(call, Selection(), _ANY)


@command("ZREVRANGE", -4, "readonly", keys=ONE)
def zrevrange(call: Call) -> Reply:
    """Get a part of a sorted set by ranks, from the highest score on."""
    return _select(call, Selection(RANK, True), _LIMIT)


@command("ZRANGEBYSCORE", -4, "readonly", keys=ONE)
def zrangebyscore(call: Call) -> Reply:
    """Get a part of a sorted set by scores."""
    return _select(call, Selection(SCORE), _LIMIT)


@command("ZREVRANGEBYSCORE", -4, "readonly", keys=ONE)
def zrevrangebyscore(call: Call) -> Reply:
    """Get a part of a sorted set by scores, from the highest on."""
    return _select(call, Selection(SCORE, True), _LIMIT)


@command("ZRANGEBYLEX", -4, "readonly", keys=ONE)
def zrangebylex(call: Call) -> Reply:
    """Get a part of a sorted set, whose scores are all the same, by members."""
    return _select(call, Selection(LEX), _LIMIT)


@command("ZREVRANGEBYLEX", -4, "readonly", keys=ONE)
def zrevrangebylex(call: Call) -> Reply:
    """Get a part of a sorted set, whose scores are all the same, by members, from the last on."""
    return _select(call, Selection(LEX, True), _LIMIT)


@command("ZRANGESTORE", -5, "write", "adds", keys=(1, 2, 1))
def zrangestore(call: Call) -> Reply:
    """Store a part of a sorted set in a key."""
    selection = Selection()
    selection.read(call.args[2:], _STORED)
    found = SortedSet.find(call.db, call.args[1])
    selected = [] if found is None else selection.entries(found)
    SortedSet.replace(call.db, call.args[0], {member: score for score, member in selected})
    return len(selected)


# Counting and removing


@command("ZCOUNT", 4, "readonly", keys=ONE)
def zcount(call: Call) -> Reply:
    """Count the members of a sorted set with scores between two."""
    return _count(call, ScoreRange.parse(*call.args[1:]))


@command("ZLEXCOUNT", 4, "readonly", keys=ONE)
def zlexcount(call: Call) -> Reply:
    """Count the members of a sorted set, whose scores are all the same, between two."""
    return _count(call, LexRange.parse(*call.args[1:]))


def _count(call: Call, part: ScoreRange | LexRange) -> int:
    found = SortedSet.find(call.db, call.args[0])
    return 0 if found is None else found.count_between(*part.cuts(found))


@command("ZREMRANGEBYRANK", 4, "write", keys=ONE)
def zremrangebyrank(call: Call) -> Reply:
    """Remove a part of a sorted set by ranks."""
    return _remove(call, RankRange.parse(*call.args[1:]))


@command("ZREMRANGEBYSCORE", 4, "write", keys=ONE)
def zremrangebyscore(call: Call) -> Reply:
    """Remove a part of a sorted set by scores."""
    return _remove(call, ScoreRange.parse(*call.args[1:]))


@command("ZREMRANGEBYLEX", 4, "write", keys=ONE)
def zremrangebylex(call: Call) -> Reply:
    """Remove a part of a sorted set, whose scores are all the same, by members."""
    return _remove(call, LexRange.parse(*call.args[1:]))


def _remove(call: Call, part: Range) -> int:
    found = SortedSet.find(call.db, call.args[0])
    return 0 if found is None else found.remove_all(entries_in(found, part))
