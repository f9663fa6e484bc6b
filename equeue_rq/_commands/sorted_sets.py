"""Commands of sorted sets: members and their scores. Ranges, and several sets together, are in modules of
their own.
"""

from __future__ import annotations

from equeue_rq._commands import _blocking
from equeue_rq._commands._scanning import scan_cursor, scan_options
from equeue_rq._commands._table import ONE, Blocked, Call, command, integer, number
from equeue_rq._commands._zadd import ZAddOptions, zadd_options
from equeue_rq._commands.sets import MAX, NOT_BETWEEN, keys_and_options, positive
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._replies import Reply, Scores, format_score
from equeue_rq._types._members import chance
from equeue_rq._types.zset import FIRST, Entry, SortedSet

# Adding and removing


@command("ZADD", -4, "write", "adds", keys=ONE)
def zadd(call: Call) -> Reply:
    """Add members to a sorted set, or change their scores."""
    options, rest = zadd_options(call.args[1:])
    pairs = [(number(rest[at]), rest[at + 1]) for at in range(0, len(rest), 2)]
    if options.incr:
        return _increment(call, options, *pairs[0])
    found = SortedSet.find(call.db, call.args[0]) if options.xx else _find_or_make(call)
    if found is None:
        return 0
    added = changed = 0
    for score, member in pairs:
        old = found.score(member)
        if options.allow(old, score):
            if old is None:
                added += 1
            elif old == score:
                continue
            changed += 1
            found.put(member, score, old)
    if changed:
        found.save()
        call.db.signal(call.args[0])
    return changed if options.ch else added


@command("ZINCRBY", 4, "write", "adds", keys=ONE)
def zincrby(call: Call) -> Reply:
    """Add to the score of a member."""
    return _increment(call, ZAddOptions(incr=True), number(call.args[1]), call.args[2])


def _increment(call: Call, options: ZAddOptions, step: float, member: bytes) -> Reply:
    found = _find_or_make(call)
    old = found.score(member)
    score = step if old is None else old + step
    if score != score and not options.nx:
        raise CommandError("ERR resulting score is not a number (NaN)")
    if not options.allow(old, score):
        return None
    if old != score:
        found.put(member, score, old)
        found.save()
        call.db.signal(call.args[0])
    return score


@command("ZREM", -3, "write", keys=ONE)
def zrem(call: Call) -> Reply:
    """Remove members from a sorted set."""
    found = _find(call)
    if found is None:
        return 0
    removed = sum(map(found.remove, call.args[1:]))
    if removed:
        found.save()
    return removed


# Looking up


@command("ZCARD", 2, "readonly", keys=ONE)
def zcard(call: Call) -> Reply:
    """Get the number of members of a sorted set."""
    found = _find(call)
    return 0 if found is None else len(found)


@command("ZSCORE", 3, "readonly", keys=ONE)
def zscore(call: Call) -> Reply:
    """Get the score of a member of a sorted set."""
    found = _find(call)
    return None if found is None else found.score(call.args[1])


@command("ZMSCORE", -3, "readonly", keys=ONE)
def zmscore(call: Call) -> Reply:
    """Get the scores of several members of a sorted set."""
    found = _find(call)
    return [None if found is None else found.score(member) for member in call.args[1:]]


@command("ZRANK", -3, "readonly", keys=ONE)
def zrank(call: Call) -> Reply:
    """Get how many members of a sorted set come before one."""
    return _rank(call, False)


@command("ZREVRANK", -3, "readonly", keys=ONE)
def zrevrank(call: Call) -> Reply:
    """Get how many members of a sorted set come after one."""
    return _rank(call, True)


def _rank(call: Call, backwards: bool) -> Reply:
    with_score = len(call.args) == 3
    if len(call.args) > 3:
        raise CommandError(f"ERR wrong number of arguments for '{call.name.lower()}' command")
    if with_score and call.args[2].upper() != b"WITHSCORE":
        raise CommandError(SYNTAX)
    found = _find(call)
    score = None if found is None else found.score(call.args[1])
    if found is None or score is None:
        return None
    rank = found.rank(call.args[1], score)
    if backwards:
        rank = len(found) - 1 - rank
    return [rank, score] if with_score else rank


@command("ZRANDMEMBER", -2, "readonly", keys=ONE)
def zrandmember(call: Call) -> Reply:
    """Get members of a sorted set that are picked by chance."""
    args = call.args
    with_scores = len(args) == 3
    count = integer(args[1]) if len(args) > 1 else None
    if len(args) > 3 or (with_scores and args[2].upper() != b"WITHSCORES"):
        raise CommandError(SYNTAX)
    if count is not None and count < -MAX:
        raise CommandError(NOT_BETWEEN)
    if count is not None and with_scores and abs(count) > MAX // 2:
        raise CommandError("ERR value is out of range")
    found = _find(call)
    if found is None or count == 0:
        return None if count is None else []
    if count is None:
        return found.pick()[1]
    if count > 0:
        return entries(found.sample(count), with_scores)
    return entries(chance.choices(list(found.between(FIRST, None)), k=-count), with_scores)


@command("ZSCAN", -3, "readonly", keys=ONE)
def zscan(call: Call) -> Reply:
    """Go through the members and scores of a sorted set, some with each call."""
    start = scan_cursor(call.args[1])
    found = _find(call)
    if found is None:
        return [b"0", []]
    options = scan_options(call.args[2:])
    cursor, page = found.page(start, options.count)
    flat: list[bytes] = []
    for score, member in page:
        if options.matches(member):
            flat += member, format_score(score)
    return [b"%d" % cursor, flat]


# Popping


@command("ZPOPMIN", -2, "write", keys=ONE)
def zpopmin(call: Call) -> Reply:
    """Remove the members with the lowest scores, and get them."""
    return _pop_some(call, False)


@command("ZPOPMAX", -2, "write", keys=ONE)
def zpopmax(call: Call) -> Reply:
    """Remove the members with the highest scores, and get them."""
    return _pop_some(call, True)


def _pop_some(call: Call, highest: bool) -> Reply:
    if len(call.args) > 2:
        raise CommandError(SYNTAX)
    count = positive(call.args[1]) if len(call.args) == 2 else 1
    found = _find(call)
    popped = [] if found is None else _pop(found, count, highest)
    if len(call.args) == 2:
        return entries(popped, True)
    return [part for score, member in popped for part in (member, score)]


@command("BZPOPMIN", -3, "write", "blocking", keys=(1, -2, 1))
def bzpopmin(call: Call) -> Reply:
    """Remove the member with the lowest score of the first sorted set that has any, or wait for one."""
    return _pop_one(call, False)


@command("BZPOPMAX", -3, "write", "blocking", keys=(1, -2, 1))
def bzpopmax(call: Call) -> Reply:
    """Remove the member with the highest score of the first sorted set that has any, or wait for one."""
    return _pop_one(call, True)


def _pop_one(call: Call, highest: bool) -> Reply:
    keys, timeout = call.args[:-1], _blocking.seconds(call.args[-1])
    for key in keys:
        found = SortedSet.find(call.db, key)
        if found is not None:
            ((score, member),) = _pop(found, 1, highest)
            return [key, member, score]
    return Blocked(keys, timeout)


@command("ZMPOP", -4, "write")
def zmpop(call: Call) -> Reply:
    """Remove members from the first sorted set that has any, and get them."""
    return _pop_from_first(call, *_mpop_arguments(call.args))


@command("BZMPOP", -5, "write", "blocking")
def bzmpop(call: Call) -> Reply:
    """Remove members from the first sorted set that has any, or wait for some."""
    keys, highest, count = _mpop_arguments(call.args[1:])
    timeout = _blocking.seconds(call.args[0])
    popped = _pop_from_first(call, keys, highest, count)
    return Blocked(keys, timeout) if popped is None else popped


def _mpop_arguments(args: list[bytes]) -> tuple[list[bytes], bool, int]:
    """The keys, whether the highest are wanted, and how many."""
    keys, options = keys_and_options(args, SYNTAX)
    if not options or options[0].upper() not in (b"MIN", b"MAX"):
        raise CommandError(SYNTAX)
    count = 1
    if len(options) > 1:
        if len(options) != 3 or options[1].upper() != b"COUNT":
            raise CommandError(SYNTAX)
        message = "ERR count should be greater than 0"
        count = integer(options[2], message)
        if count <= 0:
            raise CommandError(message)
    return keys, options[0].upper() == b"MAX", count


def _pop_from_first(call: Call, keys: list[bytes], highest: bool, count: int) -> Reply:
    for key in keys:
        found = SortedSet.find(call.db, key)
        if found is not None:
            popped = _pop(found, count, highest)
            return [key, [[member, score] for score, member in popped]]
    return None


def _pop(found: SortedSet, count: int, highest: bool) -> list[Entry]:
    size = len(found)
    if highest:
        popped = found.by_rank(max(0, size - count), size)[::-1]
    else:
        popped = found.by_rank(0, min(count, size))
    found.remove_all(popped)
    return popped


def _find(call: Call) -> SortedSet | None:
    return SortedSet.find(call.db, call.args[0])


def _find_or_make(call: Call) -> SortedSet:
    return SortedSet.find_or_make(call.db, call.args[0])


def entries(found: list[Entry], with_scores: bool) -> Reply:
    """The answer for entries: their members, or both."""
    if with_scores:
        return Scores([member, score] for score, member in found)
    return [member for _, member in found]
