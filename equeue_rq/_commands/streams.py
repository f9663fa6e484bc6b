"""Commands of streams; without consumer groups, which RQ and its company do not use."""

from __future__ import annotations

from itertools import islice

from equeue_rq._commands import _blocking
from equeue_rq._commands._streaming import (
    NewId,
    Trim,
    full_id,
    high_id,
    low_id,
)
from equeue_rq._commands._table import ONE, Blocked, Call, command, integer
from equeue_rq._messages import NO_SUCH_KEY, SYNTAX, CommandError, wrong_arity
from equeue_rq._replies import OK, Reply, Streams
from equeue_rq._types.stream import (
    FIRST_ID,
    LAST_ID,
    Entry,
    Stream,
    next_id,
    previous_id,
    show_id,
)


def _show(entry: Entry | None) -> Reply:
    return None if entry is None else [show_id(entry[0]), entry[1]]


@command("XADD", -5, "write", "adds", keys=ONE)
def xadd(call: Call) -> Reply:
    """Add an entry to the end of a stream, and trim its start if that is wanted."""
    words = call.args[:0:-1]
    trim, make = Trim(), True
    while words and words[-1] != b"*":
        if words[-1].upper() == b"NOMKSTREAM":
            words.pop()
            make = False
        elif not trim.take(words):
            break
    if not words:
        raise wrong_arity("xadd")
    wanted = NewId.parse(words.pop())
    trim.check()
    fields = words[::-1]
    if not fields or len(fields) % 2:
        raise wrong_arity("xadd")
    if (wanted.milliseconds, wanted.sequence) == (0, 0):
        raise CommandError("ERR The ID specified in XADD must be greater than 0-0")
    found = (Stream.find_or_make if make else Stream.find)(call.db, call.args[0])
    if found is None:
        return None
    stream_id = wanted.resolve(found, call.db.now)
    found.append(stream_id, fields)
    trim.apply(found)
    found.save()
    call.db.signal(call.args[0])
    return show_id(stream_id)


@command("XLEN", 2, "readonly", keys=ONE)
def xlen(call: Call) -> Reply:
    """Get the number of entries of a stream."""
    found = Stream.find(call.db, call.args[0])
    return 0 if found is None else len(found)


@command("XRANGE", -4, "readonly", keys=ONE)
def xrange(call: Call) -> Reply:
    """Get the entries of a stream between two ids."""
    low, high = low_id(call.args[1]), high_id(call.args[2])
    return _range(call, low, high, False)


@command("XREVRANGE", -4, "readonly", keys=ONE)
def xrevrange(call: Call) -> Reply:
    """Get the entries of a stream between two ids, from the last to the first."""
    low, high = low_id(call.args[2]), high_id(call.args[1])
    return _range(call, low, high, True)


def _range(call: Call, low: bytes, high: bytes, backwards: bool) -> Reply:
    count = None
    options = call.args[3:]
    for at in range(0, len(options), 2):
        if options[at].upper() != b"COUNT" or at + 1 == len(options):
            raise CommandError(SYNTAX)
        count = max(0, integer(options[at + 1]))
    found = Stream.find(call.db, call.args[0])
    if found is None:
        return []
    if count == 0:
        return None
    walk = (found.reversed if backwards else found.between)(low, high)
    return [_show(entry) for entry in islice(walk, count)]


@command("XDEL", -3, "write", keys=ONE)
def xdel(call: Call) -> Reply:
    """Remove entries from a stream."""
    found = Stream.find(call.db, call.args[0])
    if found is None:
        return 0
    ids = [full_id(raw) for raw in call.args[1:]]  # all are read before one is removed
    removed = [each for each in ids if found.remove(each)]
    if removed:
        found.deleted_id = max(found.deleted_id, *removed)
        found.save()
    return len(removed)


@command("XTRIM", -4, "write", keys=ONE)
def xtrim(call: Call) -> Reply:
    """Remove the oldest entries of a stream."""
    words = call.args[:0:-1]
    trim = Trim()
    while words:
        if not trim.take(words):
            raise CommandError(SYNTAX)
    trim.check()
    if not trim.strategy:
        raise CommandError(f"{SYNTAX}, XTRIM must be called with a trimming strategy")
    found = Stream.find(call.db, call.args[0])
    removed = 0 if found is None else trim.apply(found)
    if found is not None and removed:
        found.save()
    return removed


# Waiting for entries


@command("XREAD", -4, "readonly", "blocking")
def xread(call: Call) -> Reply:
    """Get the entries of streams that are behind given ids, or wait for some."""
    words = call.args[::-1]
    count, timeout = None, None
    while words and (word := words.pop().upper()) != b"STREAMS":
        if word == b"COUNT" and words:
            count = integer(words.pop())
        elif word == b"BLOCK" and words:
            timeout = _blocking.milliseconds(words.pop())
        elif word in (b"GROUP", b"NOACK"):
            raise CommandError(
                f"ERR The {word.decode()} option is only supported by XREADGROUP. "
                "You called XREAD instead."
            )
        else:
            raise CommandError(SYNTAX)
    if not words:
        raise CommandError(SYNTAX)
    if len(words) % 2:
        raise CommandError(
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
            "specified."
        )
    half = len(words) // 2
    keys, ids = words[: half - 1 : -1], words[half - 1 :: -1]
    behind = [_behind(call, *each) for each in zip(keys, ids, strict=True)]
    answer = _read(call, keys, behind, count)
    if answer or timeout is None:
        return answer or None
    # ``$`` means what is last now, not what is last when it is looked again.
    again = call.args[:-half] + [show_id(each) for each in behind]
    return Blocked(keys, timeout, again=again)


def _behind(call: Call, key: bytes, raw: bytes) -> bytes:
    """The id behind which entries of this key are wanted. Redis looks at its type first."""
    found = Stream.find(call.db, key)
    if raw == b">":
        raise CommandError(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
            "<consumer> option."
        )
    if raw not in (b"$", b"+"):
        return full_id(raw)
    if found is None:
        return FIRST_ID
    return found.last_id if raw == b"$" else previous_id(found.last_id) or FIRST_ID


def _read(call: Call, keys: list[bytes], behind: list[bytes], count: int | None) -> Streams:
    limit = count if count is not None and count > 0 else None
    answer = Streams()
    for key, stream_id in zip(keys, behind, strict=True):
        found = Stream.find(call.db, key)
        low = next_id(stream_id)
        if found is None or low is None or found.last_id < low:
            continue
        entries = [_show(entry) for entry in islice(found.between(low, LAST_ID), limit)]
        if entries:
            answer.append([key, entries])
    return answer


# What is known of a stream


@command("XINFO STREAM", -3, "readonly", keys=(2, 2, 1))
def xinfo_stream(call: Call) -> Reply:
    """Get what is known of a stream. The radix tree is Redis's own, so its size is only plausible."""
    full, count = _full(call.args[1:])
    found = Stream.find(call.db, call.args[0])
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    first = found.first()
    answer: dict[bytes, Reply] = {
        b"length": len(found),
        b"radix-tree-keys": int(len(found) > 0),
        b"radix-tree-nodes": 1 + int(len(found) > 0),
        b"last-generated-id": show_id(found.last_id),
        b"max-deleted-entry-id": show_id(found.deleted_id),
        b"entries-added": found.added,
        b"recorded-first-entry-id": show_id(FIRST_ID if first is None else first[0]),
    }
    if full:
        entries = islice(found.between(FIRST_ID, LAST_ID), count or None)
        return answer | {b"entries": [_show(entry) for entry in entries], b"groups": []}
    return answer | {
        b"groups": 0,
        b"first-entry": _show(first),
        b"last-entry": _show(found.last()),
    }


def _full(options: list[bytes]) -> tuple[bool, int]:
    """Whether entries are wanted, and how many; 0: all."""
    if not options:
        return False, 0
    counted = len(options) == 3 and options[1].upper() == b"COUNT"
    if options[0].upper() != b"FULL" or not (len(options) == 1 or counted):
        raise CommandError(
            "ERR unknown subcommand or wrong number of arguments for 'stream'. Try XINFO HELP."
        )
    count = integer(options[2]) if counted else 10
    return True, 10 if count < 0 else count


@command("XSETID", -3, "write", keys=ONE)
def xsetid(call: Call) -> Reply:
    """Set the id that counts as the last one of a stream."""
    last_id = full_id(call.args[1])
    added, deleted_id = _set_options(call.args[2:])
    if deleted_id is not None and last_id < deleted_id:
        raise CommandError(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
        )
    found = Stream.find(call.db, call.args[0])
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    if last_id < found.deleted_id:
        raise CommandError(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
        )
    last = found.last()
    if last is not None:
        if last_id < last[0]:
            raise CommandError(
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            )
        if added is not None and added < len(found):
            raise CommandError(
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            )
    found.last_id = last_id
    found.added = found.added if added is None else added
    found.deleted_id = deleted_id or found.deleted_id
    found.save()
    return OK


def _set_options(options: list[bytes]) -> tuple[int | None, bytes | None]:
    added: int | None = None
    deleted_id: bytes | None = None
    for at in range(0, len(options), 2):
        word = options[at].upper()
        if at + 1 == len(options) or word not in (b"ENTRIESADDED", b"MAXDELETEDID"):
            raise CommandError(SYNTAX)
        if word == b"MAXDELETEDID":
            deleted_id = full_id(options[at + 1])
            continue
        added = integer(options[at + 1])
        if added < 0:
            raise CommandError("ERR entries_added must be positive")
    return added, deleted_id or None
