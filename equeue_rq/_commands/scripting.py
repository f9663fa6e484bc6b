"""Commands that run Lua scripts. A script is one transaction; its text is in the store, so that every
process knows it by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from equeue_core.storage import scan
from equeue_rq import _lua
from equeue_rq._commands._shortcuts import shortcut
from equeue_rq._commands._table import Call, command, integer
from equeue_rq._keyspace import SCRIPT, Keyspace
from equeue_rq._messages import CommandError
from equeue_rq._replies import OK, Reply

_PASSING = 500
"""How many scripts are kept that were not loaded, only run: an application may make new ones for ever."""

_LOADED, _RUN = b"l", b"r"

NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL."


def _digest(script: bytes) -> bytes:
    return hashlib.sha1(script, usedforsecurity=False).hexdigest().encode()


def _keep(db: Keyspace, script: bytes, how: bytes) -> bytes:
    """Keep a script, in place of another if there are too many; its digest."""
    digest = _digest(script)
    old = db.txn.get(SCRIPT + digest)
    if old is None or (old[:1] == _RUN and how == _LOADED):
        if how == _RUN:
            _make_room(db)
        db.txn.put(SCRIPT + digest, how + script)
    return digest


def _make_room(db: Keyspace) -> None:
    passing = [key for key, raw in scan(db.txn, SCRIPT) if raw[:1] == _RUN]
    for key in passing[_PASSING - 1 :]:
        db.txn.delete(key)


def _find(db: Keyspace, digest: bytes) -> bytes:
    raw = db.txn.get(SCRIPT + digest) if len(digest) == 40 else None
    if raw is None:
        raise CommandError(NO_SCRIPT)
    return raw[1:]


def _run(call: Call, find: Callable[[], tuple[bytes, bytes]], read_only: bool) -> Reply:
    number = integer(call.args[1])
    if number > len(call.args) - 2:
        raise CommandError("ERR Number of keys can't be greater than number of args")
    if number < 0:
        raise CommandError("ERR Number of keys can't be negative")
    script, digest = find()
    keys, arguments = call.args[2 : number + 2], call.args[number + 2 :]
    quick = None if read_only else shortcut(script)
    if quick is not None and (done := quick(call, keys)) is not None:
        return done
    return _lua.run(call, script, digest, keys, arguments, read_only)


def _eval(call: Call, read_only: bool) -> Reply:
    script = call.args[0]

    def keep() -> tuple[bytes, bytes]:
        _lua.check(script, _digest(script))
        return script, _keep(call.db, script, _RUN)

    return _run(call, keep, read_only)


def _evalsha(call: Call, read_only: bool) -> Reply:
    digest = call.args[0].lower()
    return _run(call, lambda: (_find(call.db, digest), digest), read_only)


@command("EVAL", -3, "write", "adds", "noscript", "script")
def eval_script(call: Call) -> Reply:
    """Run a Lua script."""
    return _eval(call, False)


@command("EVALSHA", -3, "write", "adds", "noscript", "script")
def evalsha(call: Call) -> Reply:
    """Run a Lua script that was loaded or run before, by its SHA-1 digest."""
    return _evalsha(call, False)


@command("EVAL_RO", -3, "write", "noscript")
def eval_ro(call: Call) -> Reply:
    """Run a Lua script that changes nothing."""
    return _eval(call, True)


@command("EVALSHA_RO", -3, "readonly", "noscript")
def evalsha_ro(call: Call) -> Reply:
    """Run a Lua script that changes nothing, by its SHA-1 digest."""
    return _evalsha(call, True)


@command("SCRIPT LOAD", 3, "write", "adds", "noscript")
def script_load(call: Call) -> Reply:
    """Keep a Lua script, and get its digest."""
    script = call.args[0]
    _lua.check(script, _digest(script))
    return _keep(call.db, script, _LOADED)


@command("SCRIPT EXISTS", -3, "readonly", "noscript")
def script_exists(call: Call) -> Reply:
    """Tell which of several digests are those of scripts that are kept."""
    txn = call.db.txn
    found = [len(each) == 40 and txn.get(SCRIPT + each.lower()) is not None for each in call.args]
    return list(map(int, found))


@command("SCRIPT FLUSH", -2, "write", "noscript")
def script_flush(call: Call) -> Reply:
    """Forget all scripts."""
    if call.args[1:] or (call.args and call.args[0].upper() not in (b"SYNC", b"ASYNC")):
        raise CommandError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
    for key, _ in scan(call.db.txn, SCRIPT):
        call.db.txn.delete(key)
    return OK


@command("SCRIPT KILL", 2, "connection", "noscript")
def script_kill(call: Call) -> Reply:
    """Refused: no script can be seen running from outside, and each ends by itself in time."""
    raise CommandError("NOTBUSY No scripts in execution right now.")
