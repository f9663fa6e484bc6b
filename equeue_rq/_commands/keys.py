"""Commands of keys of any type."""

from __future__ import annotations

from equeue_rq._commands._arguments import MAX_INTEGER, invalid_expiry
from equeue_rq._commands._scanning import INVALID_CURSOR, scan_options
from equeue_rq._commands._table import ONE, Call, command, integer
from equeue_rq._glob import literal_prefix, matcher
from equeue_rq._keyspace import Meta
from equeue_rq._messages import NO_SUCH_KEY, SYNTAX, CommandError
from equeue_rq._replies import OK, Reply, Status
from equeue_rq._types._members import chance

ALL = (1, -1, 1)
"""The keys of a command whose arguments are all keys."""

_SAME = "ERR source and destination objects are the same"

_LONGEST_CURSOR = 1000
"""Digits of the longest cursor of SCAN: that of a name of 400 bytes."""


@command("DEL", -2, "write", keys=ALL)
def del_(call: Call) -> Reply:
    """Delete keys."""
    deleted = 0
    for name in call.args:
        meta = call.db.find(name)
        if meta is not None:
            call.db.delete(meta)
            deleted += 1
    return deleted


@command("UNLINK", -2, "write", keys=ALL)
def unlink(call: Call) -> Reply:
    """Delete keys (the same as DEL here)."""
    return del_(call)


@command("EXISTS", -2, "readonly", keys=ALL)
def exists(call: Call) -> Reply:
    """Count the keys that are there."""
    return sum(call.db.find(name) is not None for name in call.args)


@command("TOUCH", -2, "readonly", keys=ALL)
def touch(call: Call) -> Reply:
    """Count the keys that are there (nothing remembers when a key was used)."""
    return exists(call)


@command("TYPE", 2, "readonly", keys=ONE)
def type_(call: Call) -> Reply:
    """Get the type of a key."""
    meta = call.db.find(call.args[0])
    return Status(b"none" if meta is None else meta.kind.name.lower().encode())


# Other names


@command("RENAME", 3, "write", keys=(1, 2, 1))
def rename(call: Call) -> Reply:
    """Give a key another name, in place of the key that has it."""
    meta, name = _to_rename(call), call.args[1]
    if name != meta.name:
        call.db.rename(meta, name)
    return OK


@command("RENAMENX", 3, "write", keys=(1, 2, 1))
def renamenx(call: Call) -> Reply:
    """Give a key another name, if no key has it."""
    meta, name = _to_rename(call), call.args[1]
    if call.db.find(name) is not None:
        return 0
    call.db.rename(meta, name)
    return 1


def _to_rename(call: Call) -> Meta:
    meta = call.db.find(call.args[0])
    if meta is None:
        raise CommandError(NO_SUCH_KEY)
    return meta


@command("MOVE", 3, "write", keys=ONE)
def move(call: Call) -> Reply:
    """Move a key to another database, if that has none of this name."""
    name = call.args[0]
    target = call.db.other(integer(call.args[1]))
    if target.number == call.db.number:
        raise CommandError(_SAME)
    meta = call.db.find(name)
    if meta is None or target.find(name) is not None:
        return 0
    call.db.move(meta, target, name)
    return 1


@command("COPY", -3, "write", "adds", keys=(1, 2, 1))
def copy(call: Call) -> Reply:
    """Copy a key."""
    source, name, *options = call.args
    target, replace = call.db, False
    while options:
        word = options.pop(0).upper()
        if word == b"REPLACE":
            replace = True
        elif word == b"DB" and options:
            target = call.db.other(integer(options.pop(0)))
        else:
            raise CommandError(SYNTAX)
    if source == name and target.number == call.db.number:
        raise CommandError(_SAME)
    meta, there = call.db.find(source), target.find(name)
    if meta is None or (there is not None and not replace):
        return 0
    if there is not None:
        target.delete(there)
    call.db.copy(meta, target, name)
    return 1


# Expiry


@command("EXPIRE", -3, "write", keys=ONE)
def expire(call: Call) -> Reply:
    """Let a key expire after some seconds."""
    return _expire(call, 1000, call.db.now)


@command("PEXPIRE", -3, "write", keys=ONE)
def pexpire(call: Call) -> Reply:
    """Let a key expire after some milliseconds."""
    return _expire(call, 1, call.db.now)


@command("EXPIREAT", -3, "write", keys=ONE)
def expireat(call: Call) -> Reply:
    """Let a key expire at a time in seconds since the epoch."""
    return _expire(call, 1000, 0)


@command("PEXPIREAT", -3, "write", keys=ONE)
def pexpireat(call: Call) -> Reply:
    """Let a key expire at a time in milliseconds since the epoch."""
    return _expire(call, 1, 0)


def _expire(call: Call, unit: int, since: int) -> int:
    conditions = _conditions(call.args[2:]) if len(call.args) > 2 else _ALWAYS
    at = integer(call.args[1]) * unit
    if not -MAX_INTEGER <= at <= MAX_INTEGER - since:
        raise invalid_expiry(call.name.lower())
    at += since
    meta = call.db.find(call.args[0])
    if meta is None or not _may_expire(meta.expires, at, conditions):
        return 0
    if at <= call.db.now:
        call.db.delete(meta)
    else:
        call.db.expire(meta, at)
    return 1


_ALWAYS: set[bytes] = set()
"""No conditions."""


def _conditions(args: list[bytes]) -> set[bytes]:
    conditions = set()
    for word in args:
        if word.upper() not in (b"NX", b"XX", b"GT", b"LT"):
            raise CommandError(f"ERR Unsupported option {word.decode(errors='replace')}")
        conditions.add(word.upper())
    if b"NX" in conditions and len(conditions) > 1:
        text = "ERR NX and XX, GT or LT options at the same time are not compatible"
        raise CommandError(text)
    if b"GT" in conditions and b"LT" in conditions:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    return conditions


def _may_expire(old: int, new: int, conditions: set[bytes]) -> bool:
    """Whether the conditions allow it. A key that does not expire counts as expiring last."""
    return not (
        (b"NX" in conditions and old)
        or (b"XX" in conditions and not old)
        or (b"GT" in conditions and (not old or new <= old))
        or (b"LT" in conditions and old and new >= old)
    )


@command("PERSIST", 2, "write", keys=ONE)
def persist(call: Call) -> Reply:
    """Let a key not expire any more."""
    meta = call.db.find(call.args[0])
    if meta is None or not meta.expires:
        return 0
    call.db.expire(meta, 0)
    return 1


@command("TTL", 2, "readonly", keys=ONE)
def ttl(call: Call) -> Reply:
    """Get after how many seconds a key expires; -1: never, -2: there is no such key."""
    left = _left(call, call.db.now)
    return left if left < 0 else (left + 500) // 1000


@command("PTTL", 2, "readonly", keys=ONE)
def pttl(call: Call) -> Reply:
    """Get after how many milliseconds a key expires; -1: never, -2: there is no such key."""
    return _left(call, call.db.now)


@command("EXPIRETIME", 2, "readonly", keys=ONE)
def expiretime(call: Call) -> Reply:
    """Get when a key expires, in seconds since the epoch; -1: never, -2: there is no such key."""
    at = _left(call, 0)
    return at if at < 0 else (at + 500) // 1000


@command("PEXPIRETIME", 2, "readonly", keys=ONE)
def pexpiretime(call: Call) -> Reply:
    """Get when a key expires, in milliseconds since the epoch; -1: never, -2: there is no such key."""
    return _left(call, 0)


def _left(call: Call, since: int) -> int:
    meta = call.db.find(call.args[0])
    if meta is None:
        return -2
    return meta.expires - since if meta.expires else -1


# All of them


@command("KEYS", 2, "readonly")
def keys(call: Call) -> Reply:
    """Get the names of all keys that match a pattern."""
    pattern = call.args[0]
    matches = matcher(pattern)
    found = call.db.all(prefix=literal_prefix(pattern))
    return [meta.name for meta in found if matches(meta.name)]


@command("RANDOMKEY", 1, "readonly")
def randomkey(call: Call) -> Reply:
    """Get the name of a key picked by chance. It looks at all of them."""
    picked = None
    for number, meta in enumerate(call.db.all(), 1):
        if not chance.randrange(number):
            picked = meta.name
    return picked


@command("SCAN", -2, "readonly")
def scan(call: Call) -> Reply:
    """Go through the names of all keys, some with each call."""
    after = _position(call.args[0])
    options = scan_options(call.args[1:], b"TYPE")
    prefix = b"" if options.pattern is None else literal_prefix(options.pattern)
    names = []
    for number, meta in enumerate(call.db.all(after, prefix), 1):
        if options.kind in (None, meta.kind) and options.matches(meta.name):
            names.append(meta.name)
        if number == options.count:
            return [_cursor(call.db.cursor_of(meta.name)), names]
    return [b"0", names]


def _cursor(position: bytes) -> bytes:
    """The number for a position, which has to be one for clients. A long one: Redis's have 64 bits."""
    return b"%d" % int.from_bytes(position, "big")


def _position(cursor: bytes) -> bytes:
    if not cursor.isdigit() or len(cursor) > _LONGEST_CURSOR:
        raise CommandError(INVALID_CURSOR)
    number = int(cursor)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
