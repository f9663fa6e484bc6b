"""Commands of strings."""

from __future__ import annotations

from equeue_rq import _long_double
from equeue_rq._commands._arguments import expiry, expiry_options, set_options
from equeue_rq._commands._table import ONE, Call, command, integer
from equeue_rq._keyspace import Keyspace, Kind
from equeue_rq._messages import NOT_A_FLOAT, SYNTAX, CommandError, wrong_arity
from equeue_rq._replies import OK, Reply

MAX_INTEGER = (1 << 63) - 1
MIN_INTEGER = -(1 << 63)

_LONGEST = 512 << 20
"""Bytes that a string has at most."""


def _get(db: Keyspace, name: bytes) -> bytes | None:
    meta = db.of(name, Kind.STRING)
    return None if meta is None else meta.body


def _change(db: Keyspace, name: bytes, value: bytes) -> None:
    """Give a string, made if it is not there, another value; it expires as before."""
    meta = db.of_or_make(name, Kind.STRING)
    meta.count, meta.body = 1, value
    db.save(meta)


def _replace(db: Keyspace, name: bytes, value: bytes, expires: int | None = 0) -> None:
    """Have the key be a string of this value, whatever it was.

    Parameters:
        expires: when it expires, in epoch milliseconds; 0: never; None: as the key did before.
    """
    meta = db.find(name)
    if meta is not None and expires is None:
        expires = meta.expires
    if meta is not None and meta.kind is not Kind.STRING:
        db.delete(meta)
        meta = None
    if expires and expires <= db.now:
        if meta is not None:
            db.delete(meta)
        return
    if meta is None:
        meta = db.make(name, Kind.STRING)
    meta.count, meta.body = 1, value
    if meta.expires == (expires or 0):
        db.save(meta)
    else:
        db.expire(meta, expires or 0)


@command("GET", 2, "readonly", keys=ONE)
def get(call: Call) -> Reply:
    """Get the value of a string."""
    return _get(call.db, call.args[0])


@command("SET", -3, "write", "adds", keys=ONE)
def set_(call: Call) -> Reply:
    """Set a string, whatever the key held before."""
    name, value = call.args[:2]
    options = set_options(call.args[2:])
    expires = expiry(options, call.db.now, "set")
    old = _get(call.db, name) if options.get else None
    if options.nx or options.xx:
        there = old is not None or call.db.find(name) is not None
        if there == options.nx:
            return old
    _replace(call.db, name, value, None if options.keep_ttl else expires)
    return old if options.get else OK


@command("SETNX", 3, "write", "adds", keys=ONE)
def setnx(call: Call) -> Reply:
    """Set a string if there is no such key."""
    name, value = call.args
    if call.db.find(name) is not None:
        return 0
    _replace(call.db, name, value)
    return 1


@command("SETEX", 4, "write", "adds", keys=ONE)
def setex(call: Call) -> Reply:
    """Set a string that expires after some seconds."""
    return _set_for(call, b"EX")


@command("PSETEX", 4, "write", "adds", keys=ONE)
def psetex(call: Call) -> Reply:
    """Set a string that expires after some milliseconds."""
    return _set_for(call, b"PX")


def _set_for(call: Call, unit: bytes) -> Reply:
    name, length, value = call.args
    options = set_options([unit, length])
    _replace(call.db, name, value, expiry(options, call.db.now, call.name.lower()))
    return OK


@command("GETSET", 3, "write", "adds", keys=ONE)
def getset(call: Call) -> Reply:
    """Set a string, and get its old value."""
    name, value = call.args
    old = _get(call.db, name)
    _replace(call.db, name, value)
    return old


@command("GETDEL", 2, "write", keys=ONE)
def getdel(call: Call) -> Reply:
    """Get the value of a string, and delete it."""
    meta = call.db.of(call.args[0], Kind.STRING)
    if meta is None:
        return None
    call.db.delete(meta)
    return meta.body


@command("GETEX", -2, "write", keys=ONE)
def getex(call: Call) -> Reply:
    """Get the value of a string, and change when it expires."""
    options = expiry_options(call.args[1:])
    expires = expiry(options, call.db.now, "getex")
    meta = call.db.of(call.args[0], Kind.STRING)
    if meta is None:
        return None
    if expires and expires <= call.db.now:
        call.db.delete(meta)
    elif expires or (options.persist and meta.expires):
        call.db.expire(meta, expires)
    return meta.body


@command("MGET", -2, "readonly", keys=(1, -1, 1))
def mget(call: Call) -> Reply:
    """Get the values of several strings."""
    found = (call.db.find(name) for name in call.args)
    return [meta.body if meta is not None and meta.kind is Kind.STRING else None for meta in found]


@command("MSET", -3, "write", "adds", keys=(1, -1, 2))
def mset(call: Call) -> Reply:
    """Set several strings."""
    _replace_all(call)
    return OK


@command("MSETNX", -3, "write", "adds", keys=(1, -1, 2))
def msetnx(call: Call) -> Reply:
    """Set several strings if there is none of these keys."""
    if len(call.args) % 2:
        raise wrong_arity(call.name)
    if any(call.db.find(name) is not None for name in call.args[::2]):
        return 0
    _replace_all(call)
    return 1


def _replace_all(call: Call) -> None:
    if len(call.args) % 2:
        raise wrong_arity(call.name)
    for name, value in zip(call.args[::2], call.args[1::2], strict=True):
        _replace(call.db, name, value)


@command("APPEND", 3, "write", "adds", keys=ONE)
def append(call: Call) -> Reply:
    """Put something behind the value of a string."""
    name, value = call.args
    value = (_get(call.db, name) or b"") + value
    _check_length(len(value))
    _change(call.db, name, value)
    return len(value)


@command("STRLEN", 2, "readonly", keys=ONE)
def strlen(call: Call) -> Reply:
    """Get the length of a string in bytes."""
    return len(_get(call.db, call.args[0]) or b"")


# Numbers


@command("INCR", 2, "write", "adds", keys=ONE)
def incr(call: Call) -> Reply:
    """Add 1 to an integer."""
    return _add(call, 1)


@command("DECR", 2, "write", "adds", keys=ONE)
def decr(call: Call) -> Reply:
    """Subtract 1 from an integer."""
    return _add(call, -1)


@command("INCRBY", 3, "write", "adds", keys=ONE)
def incrby(call: Call) -> Reply:
    """Add to an integer."""
    return _add(call, integer(call.args[1]))


@command("DECRBY", 3, "write", "adds", keys=ONE)
def decrby(call: Call) -> Reply:
    """Subtract from an integer."""
    number = integer(call.args[1])
    if number == MIN_INTEGER:
        raise CommandError("ERR decrement would overflow")
    return _add(call, -number)


def _add(call: Call, number: int) -> int:
    name = call.args[0]
    old = _get(call.db, name)
    total = number + (0 if old is None else integer(old))
    if not MIN_INTEGER <= total <= MAX_INTEGER:
        raise CommandError("ERR increment or decrement would overflow")
    _change(call.db, name, b"%d" % total)
    return total


@command("INCRBYFLOAT", 3, "write", "adds", keys=ONE)
def incrbyfloat(call: Call) -> Reply:
    """Add to a number with decimals."""
    name, by = call.args
    old = _get(call.db, name)
    one, other = _long_double.parse(b"0" if old is None else old), _long_double.parse(by)
    if one is None or other is None:
        raise CommandError(NOT_A_FLOAT)
    total = _long_double.add(one, other)
    if total is None:
        raise CommandError("ERR increment would produce NaN or Infinity")
    value = _long_double.text(total)
    _change(call.db, name, value)
    return value


# Parts


@command("GETRANGE", 4, "readonly", keys=ONE)
def getrange(call: Call) -> Reply:
    """Get a part of a string."""
    start, stop = integer(call.args[1]), integer(call.args[2])
    value = _get(call.db, call.args[0]) or b""
    start, stop = _ends(start, stop, len(value))
    return value[start:stop]


@command("SUBSTR", 4, "readonly", keys=ONE)
def substr(call: Call) -> Reply:
    """Get a part of a string (the old name of GETRANGE)."""
    return getrange(call)


@command("SETRANGE", 4, "write", "adds", keys=ONE)
def setrange(call: Call) -> Reply:
    """Overwrite a part of a string."""
    name, offset, part = call.args[0], integer(call.args[1]), call.args[2]
    if offset < 0:
        raise CommandError("ERR offset is out of range")
    value = _get(call.db, name) or b""
    if not part:
        return len(value)
    end = offset + len(part)
    _check_length(end)
    value = value[:offset].ljust(offset, b"\0") + part + value[end:]
    _change(call.db, name, value)
    return len(value)


def _check_length(length: int) -> None:
    if length > _LONGEST:
        raise CommandError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")


def _ends(start: int, stop: int, length: int) -> tuple[int, int]:
    """Where a part begins and ends, as in a slice. Negative: from the end, both included."""
    if start < 0 and stop < 0 and start > stop:
        return 0, 0
    start = max(start + length, 0) if start < 0 else start
    stop = max(stop + length, 0) if stop < 0 else stop
    return start, max(min(stop, length - 1) + 1, start)


# Bits


@command("SETBIT", 4, "write", "adds", keys=ONE)
def setbit(call: Call) -> Reply:
    """Set or clear a bit of a string."""
    name = call.args[0]
    offset = _bit_offset(call.args[1])
    message = "ERR bit is not an integer or out of range"
    bit = integer(call.args[2], message)
    if bit not in (0, 1):
        raise CommandError(message)
    value = bytearray(_get(call.db, name) or b"")
    at, mask = offset >> 3, 0x80 >> (offset & 7)
    value.extend(bytes(max(at + 1 - len(value), 0)))
    old = value[at] & mask
    value[at] = value[at] | mask if bit else value[at] & ~mask
    _change(call.db, name, bytes(value))
    return int(old != 0)


@command("GETBIT", 3, "readonly", keys=ONE)
def getbit(call: Call) -> Reply:
    """Get a bit of a string."""
    offset = _bit_offset(call.args[1])
    value = _get(call.db, call.args[0]) or b""
    at = offset >> 3
    return value[at] >> (7 - (offset & 7)) & 1 if at < len(value) else 0


def _bit_offset(raw: bytes) -> int:
    message = "ERR bit offset is not an integer or out of range"
    offset = integer(raw, message)
    if not 0 <= offset < _LONGEST * 8:
        raise CommandError(message)
    return offset


@command("BITCOUNT", -2, "readonly", keys=ONE)
def bitcount(call: Call) -> Reply:
    """Count the bits of a string, or a part of it, that are set."""
    name, *part = call.args
    unit = part[2].upper() if len(part) == 3 else b"BYTE"
    first = [integer(each) for each in part[:1]]
    if len(part) > 3 or unit not in (b"BYTE", b"BIT"):
        raise CommandError(SYNTAX)
    ends = first + [integer(each) for each in part[1:2]]
    value = _get(call.db, name) or b""
    bits = int.from_bytes(value, "big")
    start, stop = ends if len(ends) == 2 else (ends[0] if ends else 0, -1)
    scale = 1 if unit == b"BIT" else 8
    start, stop = _ends(start, stop, len(value) * 8 // scale)
    start, stop = start * scale, stop * scale
    if start >= stop:
        return 0
    return (bits >> (len(value) * 8 - stop) & ((1 << (stop - start)) - 1)).bit_count()
