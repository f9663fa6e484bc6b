"""Commands of sorted sets: unions, intersections and differences. Plain sets count as sorted sets whose
scores are all 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from equeue_rq._commands._table import ONE, Call, command, integer, number
from equeue_rq._commands.sets import limit_of
from equeue_rq._commands.sorted_sets import entries
from equeue_rq._keyspace import Kind
from equeue_rq._messages import SYNTAX, CommandError, WrongType
from equeue_rq._replies import Reply
from equeue_rq._types.set import MemberSet
from equeue_rq._types.zset import SortedSet

Scored = dict[bytes, float]


def _add(one: float, other: float) -> float:
    total = one + other
    return 0.0 if total != total else total  # infinity less infinity


_AGGREGATES: dict[bytes, Callable[[float, float], float]] = {b"SUM": _add, b"MIN": min, b"MAX": max}


@dataclass(slots=True)
class _Options:
    """What follows the keys."""

    with_scores: bool = False
    weights: list[float] = field(default_factory=list)
    aggregate: Callable[[float, float], float] = _add


_STORED = frozenset((b"WEIGHTS", b"AGGREGATE"))
_ANSWERED = _STORED | {b"WITHSCORES"}


def _keys(call: Call, args: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The keys, and what follows them."""
    size = integer(args[0])
    if size < 1:
        raise CommandError(f"ERR at least 1 input key is needed for '{call.name.lower()}' command")
    if size > len(args) - 1:
        raise CommandError(SYNTAX)
    return args[1 : size + 1], args[size + 1 :]


def _options(args: list[bytes], size: int, allowed: frozenset[bytes]) -> _Options:
    options = _Options()
    words = list(reversed(args))
    while words:
        word = words.pop().upper()
        if word not in allowed:
            raise CommandError(SYNTAX)
        if word == b"WITHSCORES":
            options.with_scores = True
        elif word == b"WEIGHTS":
            if len(words) < size:
                raise CommandError(SYNTAX)
            options.weights = [
                number(words.pop(), "ERR weight value is not a float") for _ in range(size)
            ]
        else:
            aggregate = _AGGREGATES.get(words.pop().upper()) if words else None
            if aggregate is None:
                raise CommandError(SYNTAX)
            options.aggregate = aggregate
    return options


def _read(call: Call, keys: list[bytes]) -> list[Scored]:
    """The members and scores of each key: none if there is no such key."""
    found: list[Scored] = []
    for key in keys:
        meta = call.db.find(key)
        if meta is None:
            found.append({})
        elif meta.kind is Kind.ZSET:
            found.append(SortedSet(call.db, meta).scores())
        elif meta.kind is Kind.SET:
            found.append(dict.fromkeys(MemberSet(call.db, meta), 1.0))
        else:
            raise WrongType
    return found


def _weighted(inputs: list[Scored], options: _Options) -> list[Scored]:
    if not options.weights:
        return inputs
    return [
        {member: _times(score, weight) for member, score in scores.items()}
        for scores, weight in zip(inputs, options.weights, strict=True)
    ]


def _times(score: float, weight: float) -> float:
    product = score * weight
    return 0.0 if product != product else product  # nothing of infinity


def _union(inputs: list[Scored], options: _Options) -> Scored:
    result: Scored = {}
    for scores in _weighted(inputs, options):
        for member, score in scores.items():
            old = result.get(member)
            result[member] = score if old is None else options.aggregate(old, score)
    return result


def _intersection(inputs: list[Scored], options: _Options) -> Scored:
    weighted = _weighted(inputs, options)
    common = [member for member in weighted[0] if all(member in each for each in weighted)]
    return {
        member: reduce(options.aggregate, [scores[member] for scores in weighted])
        for member in common
    }


def _difference(inputs: list[Scored], options: _Options) -> Scored:
    first, *others = inputs
    return {
        member: score
        for member, score in first.items()
        if not any(member in other for other in others)
    }


Combine = Callable[[list[Scored], _Options], Scored]


def _combine(
    call: Call, args: list[bytes], combine: Combine, allowed: frozenset[bytes]
) -> tuple[Scored, _Options]:
    keys, rest = _keys(call, args)
    inputs = _read(call, keys)
    options = _options(rest, len(keys), allowed)
    return combine(inputs, options), options


def _answer(call: Call, combine: Combine, allowed: frozenset[bytes] = _ANSWERED) -> Reply:
    result, options = _combine(call, call.args, combine, allowed)
    order = sorted((score, member) for member, score in result.items())
    return entries(order, options.with_scores)


def _store(call: Call, combine: Combine, allowed: frozenset[bytes] = _STORED) -> int:
    result, _ = _combine(call, call.args[1:], combine, allowed)
    SortedSet.replace(call.db, call.args[0], result)
    return len(result)


@command("ZUNION", -3, "readonly")
def zunion(call: Call) -> Reply:
    """Get the members of any of several sorted sets."""
    return _answer(call, _union)


@command("ZINTER", -3, "readonly")
def zinter(call: Call) -> Reply:
    """Get the members that several sorted sets have in common."""
    return _answer(call, _intersection)


@command("ZDIFF", -3, "readonly")
def zdiff(call: Call) -> Reply:
    """Get the members of a sorted set that are in none of the other ones."""
    return _answer(call, _difference, frozenset((b"WITHSCORES",)))


@command("ZUNIONSTORE", -4, "write", "adds", keys=ONE)
def zunionstore(call: Call) -> Reply:
    """Store the members of any of several sorted sets in a key."""
    return _store(call, _union)


@command("ZINTERSTORE", -4, "write", "adds", keys=ONE)
def zinterstore(call: Call) -> Reply:
    """Store the members that several sorted sets have in common in a key."""
    return _store(call, _intersection)


@command("ZDIFFSTORE", -4, "write", "adds", keys=ONE)
def zdiffstore(call: Call) -> Reply:
    """Store the members of a sorted set that are in none of the other ones in a key."""
    return _store(call, _difference, frozenset())


@command("ZINTERCARD", -3, "readonly")
def zintercard(call: Call) -> Reply:
    """Count the members that several sorted sets have in common."""
    keys, words = _keys(call, call.args)
    inputs = _read(call, keys)
    limit = 0
    while words:
        if words[0].upper() != b"LIMIT" or len(words) < 2:
            raise CommandError(SYNTAX)
        limit = limit_of(words[1])
        words = words[2:]
    size = len(_intersection(inputs, _Options()))
    return min(size, limit) if limit else size
