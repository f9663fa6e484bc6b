"""Commands of sets."""

from __future__ import annotations

from collections.abc import Callable

from equeue_rq._commands._scanning import scan_cursor, scan_options
from equeue_rq._commands._table import ONE, Call, command, integer
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._replies import Members, Reply
from equeue_rq._types._members import chance
from equeue_rq._types.set import MemberSet

NOT_POSITIVE = "ERR value is out of range, must be positive"
NO_KEYS = "ERR numkeys should be greater than 0"
MAX = (1 << 63) - 1
NOT_BETWEEN = f"ERR value is out of range, value must between -{MAX} and {MAX}"


@command("SADD", -3, "write", "adds", keys=ONE)
def sadd(call: Call) -> Reply:
    """Add members to a set."""
    found = MemberSet.find_or_make(call.db, call.args[0])
    added = sum(map(found.add, call.args[1:]))
    if added:
        found.save()
    return added


@command("SREM", -3, "write", keys=ONE)
def srem(call: Call) -> Reply:
    """Remove members from a set."""
    found = MemberSet.find(call.db, call.args[0])
    if found is None:
        return 0
    removed = sum(map(found.discard, call.args[1:]))
    if removed:
        found.save()
    return removed


@command("SISMEMBER", 3, "readonly", keys=ONE)
def sismember(call: Call) -> Reply:
    """Tell whether something is a member of a set."""
    found = MemberSet.find(call.db, call.args[0])
    return 0 if found is None else int(call.args[1] in found)


@command("SMISMEMBER", -3, "readonly", keys=ONE)
def smismember(call: Call) -> Reply:
    """Tell for each of several values whether it is a member of a set."""
    found = MemberSet.find(call.db, call.args[0])
    return [0 if found is None else int(each in found) for each in call.args[1:]]


@command("SMEMBERS", 2, "readonly", keys=ONE)
def smembers(call: Call) -> Reply:
    """Get all members of a set."""
    return Members(MemberSet.find(call.db, call.args[0]) or ())


@command("SCARD", 2, "readonly", keys=ONE)
def scard(call: Call) -> Reply:
    """Get the number of members of a set."""
    found = MemberSet.find(call.db, call.args[0])
    return 0 if found is None else len(found)


@command("SPOP", -2, "write", keys=ONE)
def spop(call: Call) -> Reply:
    """Remove members of a set that are picked by chance, and get them."""
    if len(call.args) > 2:
        raise CommandError(SYNTAX)
    number = positive(call.args[1]) if len(call.args) == 2 else None
    found = MemberSet.find(call.db, call.args[0])
    if found is None or number == 0:
        return None if number is None else Members()
    popped = found.sample(1 if number is None else number)
    for member in popped:
        found.discard(member)
    found.save()
    return popped[0] if number is None else Members(popped)


@command("SRANDMEMBER", -2, "readonly", keys=ONE)
def srandmember(call: Call) -> Reply:
    """Get members of a set that are picked by chance."""
    if len(call.args) > 2:
        raise CommandError(SYNTAX)
    number = integer(call.args[1]) if len(call.args) == 2 else None
    if number is not None and number < -MAX:
        raise CommandError(NOT_BETWEEN)
    found = MemberSet.find(call.db, call.args[0])
    if found is None or number == 0:
        return None if number is None else []
    if number is None:
        return found.pick()
    if number > 0:
        return found.sample(number)
    return chance.choices(found.all(), k=-number)


@command("SMOVE", 4, "write", keys=(1, 2, 1))
def smove(call: Call) -> Reply:
    """Move a member from one set to another."""
    source_name, target_name, member = call.args
    source = MemberSet.find(call.db, source_name)
    if source is None:
        return 0
    target = MemberSet.find_or_make(call.db, target_name)
    if source_name == target_name:
        return int(member in source)
    if not source.discard(member):
        return 0
    source.save()
    if target.add(member):
        target.save()
    return 1


# Several sets


def _union(call: Call, keys: list[bytes]) -> list[bytes]:
    members: dict[bytes, None] = {}
    for each in _find_all(call, keys):
        members.update(dict.fromkeys(each or ()))
    return list(members)


def _intersection(call: Call, keys: list[bytes], limit: int = 0) -> list[bytes]:
    found = [each for each in _find_all(call, keys) if each is not None]
    if len(found) < len(keys):
        return []
    smallest, *others = sorted(found, key=len)
    common = []
    for member in smallest:
        if all(member in other for other in others):
            common.append(member)
            if len(common) == limit:
                break
    return common


def _difference(call: Call, keys: list[bytes]) -> list[bytes]:
    first, *others = _find_all(call, keys)
    there = [each for each in others if each is not None]
    return [each for each in first or () if not any(each in other for other in there)]


def _find_all(call: Call, keys: list[bytes]) -> list[MemberSet | None]:
    return [MemberSet.find(call.db, key) for key in keys]


def _store(call: Call, members: Callable[[Call, list[bytes]], list[bytes]]) -> int:
    result = members(call, call.args[1:])
    MemberSet.replace(call.db, call.args[0], result)
    return len(result)


@command("SUNION", -2, "readonly", keys=(1, -1, 1))
def sunion(call: Call) -> Reply:
    """Get the members of any of several sets."""
    return Members(_union(call, call.args))


@command("SINTER", -2, "readonly", keys=(1, -1, 1))
def sinter(call: Call) -> Reply:
    """Get the members that several sets have in common."""
    return Members(_intersection(call, call.args))


@command("SDIFF", -2, "readonly", keys=(1, -1, 1))
def sdiff(call: Call) -> Reply:
    """Get the members of a set that are in none of the other sets."""
    return Members(_difference(call, call.args))


@command("SUNIONSTORE", -3, "write", "adds", keys=(1, -1, 1))
def sunionstore(call: Call) -> Reply:
    """Store the members of any of several sets in a key."""
    return _store(call, _union)


@command("SINTERSTORE", -3, "write", "adds", keys=(1, -1, 1))
def sinterstore(call: Call) -> Reply:
    """Store the members that several sets have in common in a key."""
    return _store(call, _intersection)


@command("SDIFFSTORE", -3, "write", "adds", keys=(1, -1, 1))
def sdiffstore(call: Call) -> Reply:
    """Store the members of a set that are in none of the other sets in a key."""
    return _store(call, _difference)


@command("SINTERCARD", -3, "readonly")
def sintercard(call: Call) -> Reply:
    """Count the members that several sets have in common."""
    keys, options = keys_and_options(
        call.args, "ERR Number of keys can't be greater than number of args"
    )
    limit = 0
    while options:
        if options[0].upper() != b"LIMIT" or len(options) < 2:
            raise CommandError(SYNTAX)
        limit = limit_of(options[1])
        options = options[2:]
    return len(_intersection(call, keys, limit))


@command("SSCAN", -3, "readonly", keys=ONE)
def sscan(call: Call) -> Reply:
    """Go through the members of a set, some with each call."""
    start = scan_cursor(call.args[1])
    found = MemberSet.find(call.db, call.args[0])
    if found is None:
        return [b"0", []]
    options = scan_options(call.args[2:])
    cursor, members = found.page(start, options.count)
    return [b"%d" % cursor, [each for each in members if options.matches(each)]]


# Arguments


def limit_of(raw: bytes) -> int:
    """What follows LIMIT where no offset is: 0 or more."""
    message = "ERR LIMIT can't be negative"
    limit = integer(raw, message)
    if limit < 0:
        raise CommandError(message)
    return limit


def positive(raw: bytes) -> int:
    """How many are wanted: 0 or more."""
    number = integer(raw, NOT_POSITIVE)
    if number < 0:
        raise CommandError(NOT_POSITIVE)
    return number


def keys_and_options(args: list[bytes], too_many: str) -> tuple[list[bytes], list[bytes]]:
    """The keys, whose number comes first, and what follows them.

    Raises:
        CommandError: the number is none, or there are fewer (`too_many`).
    """
    number = integer(args[0], NO_KEYS)
    if number <= 0:
        raise CommandError(NO_KEYS)
    if number > len(args) - 1:
        raise CommandError(too_many)
    return args[1 : number + 1], args[number + 1 :]
