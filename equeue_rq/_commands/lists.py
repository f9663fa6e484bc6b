"""Commands of lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from equeue_rq._commands._arguments import MAX_INTEGER
from equeue_rq._commands._blocking import seconds
from equeue_rq._commands._table import ONE, Blocked, Call, command, integer
from equeue_rq._keyspace import Kind
from equeue_rq._messages import NO_SUCH_KEY, OUT_OF_RANGE, SYNTAX, CommandError, wrong_arity
from equeue_rq._replies import OK, Reply
from equeue_rq._types.list import List

_NOT_POSITIVE = "ERR value is out of range, must be positive"
_NOT_BETWEEN = f"ERR value is out of range, value must between -{MAX_INTEGER} and {MAX_INTEGER}"
_SIDES = {b"LEFT": True, b"RIGHT": False}

_TWO = (1, 2, 1)
"""The keys of a command with a source and a target."""


# Pushing


@command("LPUSH", -3, "write", "adds", keys=ONE)
def lpush(call: Call) -> Reply:
    """Put entries before the first of a list."""
    return _push(List.find_or_make(call.db, call.args[0]), call.args[1:], True)


@command("RPUSH", -3, "write", "adds", keys=ONE)
def rpush(call: Call) -> Reply:
    """Put entries behind the last of a list."""
    return _push(List.find_or_make(call.db, call.args[0]), call.args[1:], False)


@command("LPUSHX", -3, "write", "adds", keys=ONE)
def lpushx(call: Call) -> Reply:
    """Put entries before the first of a list, if there is one."""
    return _push(List.find(call.db, call.args[0]), call.args[1:], True)


@command("RPUSHX", -3, "write", "adds", keys=ONE)
def rpushx(call: Call) -> Reply:
    """Put entries behind the last of a list, if there is one."""
    return _push(List.find(call.db, call.args[0]), call.args[1:], False)


def _push(found: List | None, values: list[bytes], left: bool) -> int:
    if found is None:
        return 0
    found.push(left, values)
    found.save()
    return len(found)


@command("LINSERT", 5, "write", "adds", keys=ONE)
def linsert(call: Call) -> Reply:
    """Put an entry before or behind another one."""
    name, where, pivot, value = call.args
    where = where.upper()
    if where not in (b"BEFORE", b"AFTER"):
        raise CommandError(SYNTAX)
    found = List.find(call.db, name)
    if found is None:
        return 0
    if not found.insert(pivot, value, where == b"BEFORE"):
        return -1
    found.save()
    return len(found)


@command("LSET", 4, "write", "adds", keys=ONE)
def lset(call: Call) -> Reply:
    """Replace the entry at an index."""
    name, index, value = call.args
    found = List.find(call.db, name)
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    if not found.set(integer(index), value):
        raise CommandError(OUT_OF_RANGE)
    found.save()
    return OK


# Taking


@command("LPOP", -2, "write", keys=ONE)
def lpop(call: Call) -> Reply:
    """Take entries from the start of a list."""
    return _pop(call, True)


@command("RPOP", -2, "write", keys=ONE)
def rpop(call: Call) -> Reply:
    """Take entries from the end of a list."""
    return _pop(call, False)


def _pop(call: Call, left: bool) -> Reply:
    name, *count = call.args
    if len(count) > 1:
        raise wrong_arity(call.name)
    wanted = _positive(count[0]) if count else None
    found = List.find(call.db, name)
    if found is None or wanted == 0:
        return None if found is None else []
    taken = found.pop(left) if wanted is None else found.pop_some(left, wanted)
    found.save()
    return taken


def _positive(raw: bytes) -> int:
    value = integer(raw, _NOT_POSITIVE)
    if value < 0:
        raise CommandError(_NOT_POSITIVE)
    return value


@command("LREM", 4, "write", keys=ONE)
def lrem(call: Call) -> Reply:
    """Remove entries that are equal to a value."""
    name, count, value = call.args
    wanted = integer(count)
    if wanted < -MAX_INTEGER:
        raise CommandError(_NOT_BETWEEN)
    found = List.find(call.db, name)
    removed = 0 if found is None else found.remove(value, wanted)
    if found is not None and removed:
        found.save()
    return removed


@command("LTRIM", 4, "write", keys=ONE)
def ltrim(call: Call) -> Reply:
    """Keep only a range of a list."""
    start, stop = integer(call.args[1]), integer(call.args[2])
    found = List.find(call.db, call.args[0])
    if found is not None:
        found.trim(start, stop)
    return OK


# Looking


@command("LLEN", 2, "readonly", keys=ONE)
def llen(call: Call) -> Reply:
    """Get the length of a list."""
    meta = call.db.of(call.args[0], Kind.LIST)
    return 0 if meta is None else meta.count


@command("LRANGE", 4, "readonly", keys=ONE)
def lrange(call: Call) -> Reply:
    """Get a range of a list."""
    start, stop = integer(call.args[1]), integer(call.args[2])
    found = List.find(call.db, call.args[0])
    return [] if found is None else found.range(start, stop)


@command("LINDEX", 3, "readonly", keys=ONE)
def lindex(call: Call) -> Reply:
    """Get the entry at an index."""
    found = List.find(call.db, call.args[0])
    return None if found is None else found.at(integer(call.args[1]))


@command("LPOS", -3, "readonly", keys=ONE)
def lpos(call: Call) -> Reply:
    """Get the indexes of entries that are equal to a value."""
    name, value, *words = call.args
    options = _position_options(words)
    rank, count, limit = (options.get(word) for word in (b"RANK", b"COUNT", b"MAXLEN"))
    rank = rank or 1
    found = List.find(call.db, name)
    positions: Iterator[int] = iter(())
    if found is not None:
        positions = found.positions(value, rank < 0, limit or None)
    positions = islice(positions, abs(rank) - 1, None)
    return next(positions, None) if count is None else list(islice(positions, count or None))


def _position_options(words: list[bytes]) -> dict[bytes, int]:
    options = {}
    for at in range(0, len(words), 2):
        word = words[at].upper()
        if at + 1 == len(words) or word not in (b"RANK", b"COUNT", b"MAXLEN"):
            raise CommandError(SYNTAX)
        if word == b"RANK":
            options[word] = _rank(words[at + 1])
            continue
        message = f"ERR {word.decode()} can't be negative"
        options[word] = integer(words[at + 1], message)
        if options[word] < 0:
            raise CommandError(message)
    return options


def _rank(raw: bytes) -> int:
    rank = integer(raw)
    if rank < -MAX_INTEGER:
        raise CommandError(_NOT_BETWEEN)
    if not rank:
        raise CommandError(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list"
        )
    return rank


# From one to another


@command("LMOVE", 5, "write", keys=_TWO)
def lmove(call: Call) -> Reply:
    """Take an entry of one list, and put it into another or the same."""
    source, target, take, put = call.args
    return _move(call, source, target, _side(take), _side(put))


@command("RPOPLPUSH", 3, "write", keys=_TWO)
def rpoplpush(call: Call) -> Reply:
    """Take the last entry of one list, and put it before the first of another or the same."""
    source, target = call.args
    return _move(call, source, target, False, True)


def _move(call: Call, source: bytes, target: bytes, take: bool, put: bool) -> bytes | None:
    found = List.find(call.db, source)
    if found is None:
        return None
    other = found if source == target else List.find_or_make(call.db, target)
    value = found.pop(take)
    other.push(put, [value])
    if other is not found:
        found.save()
    other.save()
    return value


def _side(word: bytes) -> bool:
    side = _SIDES.get(word.upper())
    if side is None:
        raise CommandError(SYNTAX)
    return side


# From the first that has something


@command("LMPOP", -4, "write")
def lmpop(call: Call) -> Reply:
    """Take entries of the first of several lists that has some."""
    names, left, count = _lists_and_count(call.args)
    return _pop_any(call, names, left, count)


def _lists_and_count(args: list[bytes]) -> tuple[list[bytes], bool, int]:
    few = "ERR numkeys should be greater than 0"
    wanted = integer(args[0], few)
    if wanted <= 0:
        raise CommandError(few)
    names, rest = args[1 : wanted + 1], args[wanted + 1 :]
    if not rest:
        raise CommandError(SYNTAX)
    left = _side(rest[0])
    if len(rest) == 1:
        return names, left, 1
    if len(rest) != 3 or rest[1].upper() != b"COUNT":
        raise CommandError(SYNTAX)
    few = "ERR count should be greater than 0"
    count = integer(rest[2], few)
    if count <= 0:
        raise CommandError(few)
    return names, left, count


def _pop_any(call: Call, names: list[bytes], left: bool, count: int) -> Reply:
    for name in names:
        found = List.find(call.db, name)
        if found is not None:
            taken = found.pop_some(left, count)
            found.save()
            return [name, taken]
    return None


# Waiting


@command("BLPOP", -3, "write", "blocking", keys=(1, -2, 1))
def blpop(call: Call) -> Reply:
    """Take the first entry of the first of several lists that has some; wait until one has."""
    return _pop_or_wait(call, True)


@command("BRPOP", -3, "write", "blocking", keys=(1, -2, 1))
def brpop(call: Call) -> Reply:
    """Take the last entry of the first of several lists that has some; wait until one has."""
    return _pop_or_wait(call, False)


def _pop_or_wait(call: Call, left: bool) -> Reply:
    *names, raw = call.args
    timeout = seconds(raw)
    popped = _pop_any(call, names, left, 1)
    return Blocked(names, timeout) if popped is None else [popped[0], popped[1][0]]


@command("BLMPOP", -5, "write", "blocking")
def blmpop(call: Call) -> Reply:
    """Take entries of the first of several lists that has some; wait until one has."""
    names, left, count = _lists_and_count(call.args[1:])
    timeout = seconds(call.args[0])
    popped = _pop_any(call, names, left, count)
    return Blocked(names, timeout) if popped is None else popped


@command("BLMOVE", 6, "write", "blocking", keys=_TWO)
def blmove(call: Call) -> Reply:
    """Take an entry of one list, and put it into another or the same; wait until there is one."""
    source, target, take, put, raw = call.args
    left, to_left, timeout = _side(take), _side(put), seconds(raw)
    return _move_or_wait(call, source, target, left, to_left, timeout)


@command("BRPOPLPUSH", 4, "write", "blocking", keys=_TWO)
def brpoplpush(call: Call) -> Reply:
    """Take the last entry of one list, and put it before the first of another; wait until there is one."""
    source, target, raw = call.args
    return _move_or_wait(call, source, target, False, True, seconds(raw))


def _move_or_wait(
    call: Call, source: bytes, target: bytes, take: bool, put: bool, timeout: float
) -> Reply:
    value = _move(call, source, target, take, put)
    return Blocked([source], timeout) if value is None else value
