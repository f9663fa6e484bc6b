"""OBJECT: how a key is stored, as far as that says something here."""

from __future__ import annotations

from equeue_rq._commands._table import Call, command, integer
from equeue_rq._keyspace import Kind, Meta
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply

_KEY = (2, 2, 1)

_EMBEDDED = 44
"""Up to so many bytes a string is called ``embstr``."""

_WHOLE_OR_NOT = {
    Kind.HASH: (b"listpack", b"hashtable"),
    Kind.SET: (b"listpack", b"hashtable"),
    Kind.ZSET: (b"listpack", b"skiplist"),
    Kind.LIST: (b"listpack", b"quicklist"),
    Kind.STREAM: (b"stream", b"stream"),
}


@command("OBJECT ENCODING", 3, "readonly", keys=_KEY)
def object_encoding(call: Call) -> Reply:
    """Get Redis's word for how a key is stored."""
    meta = call.db.find(call.args[0])
    if meta is None:
        return None
    if meta.kind is Kind.STRING:
        return _string(meta.body)
    return _WHOLE_OR_NOT[meta.kind][_is_large(meta)]


def _string(value: bytes) -> bytes:
    try:
        integer(value)
    except CommandError:
        return b"embstr" if len(value) <= _EMBEDDED else b"raw"
    return b"int"


def _is_large(meta: Meta) -> bool:
    return meta.count > 128 or (meta.key_id != 0 and meta.kind is Kind.HASH and not meta.body)


@command("OBJECT REFCOUNT", 3, "readonly", keys=_KEY)
def object_refcount(call: Call) -> Reply:
    """Get 1, if there is such a key."""
    return None if call.db.find(call.args[0]) is None else 1


@command("OBJECT IDLETIME", 3, "readonly", keys=_KEY)
def object_idletime(call: Call) -> Reply:
    """Get 0, if there is such a key: nothing remembers when a key was used."""
    return None if call.db.find(call.args[0]) is None else 0


@command("OBJECT FREQ", 3, "readonly", keys=_KEY)
def object_freq(call: Call) -> Reply:
    """Get an error, if there is such a key: nothing remembers how often a key was used."""
    if call.db.find(call.args[0]) is None:
        return None
    raise CommandError(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
        "when switching between policies at runtime LRU and LFU data will take some time to adjust."
    )
