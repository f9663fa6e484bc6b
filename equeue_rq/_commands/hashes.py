"""Commands of hashes."""

from __future__ import annotations

from equeue_rq import _long_double
from equeue_rq._commands._arguments import MAX_INTEGER
from equeue_rq._commands._scanning import scan_cursor, scan_options
from equeue_rq._commands._table import ONE, Call, command, integer
from equeue_rq._messages import NOT_A_FLOAT, SYNTAX, CommandError, wrong_arity
from equeue_rq._replies import OK, Reply, Scores
from equeue_rq._types.hash import Hash

_NOT_BETWEEN = f"ERR value is out of range, value must between -{MAX_INTEGER} and {MAX_INTEGER}"


@command("HSET", -4, "write", keys=ONE)
def hset(call: Call) -> Reply:
    """Set fields of a hash."""
    return _set(call)


@command("HMSET", -4, "write", keys=ONE)
def hmset(call: Call) -> Reply:
    """Set fields of a hash (the old name of HSET)."""
    _set(call)
    return OK


def _set(call: Call) -> int:
    name, *pairs = call.args
    if len(pairs) % 2:
        raise wrong_arity(call.name)
    found = Hash.find_or_make(call.db, name)
    new = sum(map(found.set, pairs[::2], pairs[1::2]))
    found.save()
    return new


@command("HSETNX", 4, "write", keys=ONE)
def hsetnx(call: Call) -> Reply:
    """Set a field of a hash if there is no such field."""
    name, field, value = call.args
    found = Hash.find_or_make(call.db, name)
    if field in found:
        return 0
    found.set(field, value)
    found.save()
    return 1


@command("HGET", 3, "readonly", keys=ONE)
def hget(call: Call) -> Reply:
    """Get the value of a field."""
    found = Hash.find(call.db, call.args[0])
    return None if found is None else found.get(call.args[1])


@command("HMGET", -3, "readonly", keys=ONE)
def hmget(call: Call) -> Reply:
    """Get the values of several fields."""
    name, *fields = call.args
    found = Hash.find(call.db, name)
    return [None if found is None else found.get(field) for field in fields]


@command("HGETALL", 2, "readonly", keys=ONE)
def hgetall(call: Call) -> Reply:
    """Get all fields and values of a hash."""
    found = Hash.find(call.db, call.args[0])
    return {} if found is None else dict(found.items())


@command("HKEYS", 2, "readonly", keys=ONE)
def hkeys(call: Call) -> Reply:
    """Get all fields of a hash."""
    found = Hash.find(call.db, call.args[0])
    return [] if found is None else list(found.fields())


@command("HVALS", 2, "readonly", keys=ONE)
def hvals(call: Call) -> Reply:
    """Get all values of a hash."""
    found = Hash.find(call.db, call.args[0])
    return [] if found is None else [value for _, value in found.items()]


@command("HDEL", -3, "write", keys=ONE)
def hdel(call: Call) -> Reply:
    """Remove fields of a hash."""
    name, *fields = call.args
    found = Hash.find(call.db, name)
    deleted = 0 if found is None else sum(map(found.delete, fields))
    if found is not None and deleted:
        found.save()
    return deleted


@command("HEXISTS", 3, "readonly", keys=ONE)
def hexists(call: Call) -> Reply:
    """Tell whether a hash has a field."""
    found = Hash.find(call.db, call.args[0])
    return 0 if found is None else int(call.args[1] in found)


@command("HLEN", 2, "readonly", keys=ONE)
def hlen(call: Call) -> Reply:
    """Get the number of fields of a hash."""
    found = Hash.find(call.db, call.args[0])
    return 0 if found is None else found.meta.count


@command("HSTRLEN", 3, "readonly", keys=ONE)
def hstrlen(call: Call) -> Reply:
    """Get the length of a field's value in bytes."""
    return len(hget(call) or b"")


# Numbers


@command("HINCRBY", 4, "write", keys=ONE)
def hincrby(call: Call) -> Reply:
    """Add to an integer in a field."""
    name, field, by = call.args
    number = integer(by)
    found = Hash.find_or_make(call.db, name)
    old = found.get(field)
    total = number + (0 if old is None else integer(old, "ERR hash value is not an integer"))
    if not -MAX_INTEGER - 1 <= total <= MAX_INTEGER:
        raise CommandError("ERR increment or decrement would overflow")
    found.set(field, b"%d" % total)
    found.save()
    return total


@command("HINCRBYFLOAT", 4, "write", keys=ONE)
def hincrbyfloat(call: Call) -> Reply:
    """Add to a number with decimals in a field."""
    name, field, by = call.args
    other = _long_double.parse(by)
    if other is None:
        raise CommandError(NOT_A_FLOAT)
    if _long_double.is_infinite(other):
        raise CommandError("ERR value is NaN or Infinity")
    found = Hash.find_or_make(call.db, name)
    old = found.get(field)
    one = _long_double.parse(b"0" if old is None else old)
    if one is None:
        raise CommandError("ERR hash value is not a float")
    total = _long_double.add(one, other)
    if total is None:
        raise CommandError("ERR increment would produce NaN or Infinity")
    value = _long_double.text(total)
    found.set(field, value)
    found.save()
    return value


# Some of them


@command("HRANDFIELD", -2, "readonly", keys=ONE)
def hrandfield(call: Call) -> Reply:
    """Get fields of a hash that are picked by chance."""
    name, *options = call.args
    if not options:
        found = Hash.find(call.db, name)
        return None if found is None else found.pick()[0][0]
    number = integer(options[0])
    if len(options) > 2 or (len(options) == 2 and options[1].upper() != b"WITHVALUES"):
        raise CommandError(SYNTAX)
    if number < -MAX_INTEGER or (len(options) == 2 and abs(number) > MAX_INTEGER // 2):
        raise CommandError(_NOT_BETWEEN if number < -MAX_INTEGER else "ERR value is out of range")
    found = Hash.find(call.db, name)
    if found is None or not number:
        picked = []
    elif number > 0:
        picked = found.sample(number)
    else:
        picked = found.pick(-number)
    if len(options) == 2:
        return Scores([list(pair) for pair in picked])
    return [field for field, _ in picked]


@command("HSCAN", -3, "readonly", keys=ONE)
def hscan(call: Call) -> Reply:
    """Go through the fields of a hash and their values, some with each call."""
    name, cursor, *words = call.args
    start = scan_cursor(cursor)
    found = Hash.find(call.db, name)
    if found is None:
        return [b"0", []]
    options = scan_options(words, b"NOVALUES")
    following, entries = found.page(start, options.count)
    wanted = [pair[: 1 + options.values] for pair in entries if options.matches(pair[0])]
    return [b"%d" % following, [word for pair in wanted for word in pair]]
