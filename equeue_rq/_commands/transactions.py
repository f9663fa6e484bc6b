"""Transactions: commands that run as one, if what was watched has not changed."""

from __future__ import annotations

from equeue_core.storage import Txn
from equeue_rq._commands._table import Call, command
from equeue_rq._messages import CommandError
from equeue_rq._replies import OK, Reply


@command("MULTI", 1, "connection", "noscript")
def multi(call: Call) -> Reply:
    """Begin a transaction: commands are queued until EXEC."""
    call.session.queued = []
    return OK


@command("EXEC", 1, "connection", "noscript")
def exec_(call: Call) -> Reply:
    """Run the queued commands as one, unless a watched key has changed."""
    from equeue_rq._running import together

    session = call.session
    queued, watched, broken = session.queued, session.watched, session.broken
    if queued is None:
        raise CommandError("ERR EXEC without MULTI")
    session.leave_transaction()
    session.watched = {}
    if broken:
        raise CommandError("EXECABORT Transaction discarded because of previous errors.")
    return together(session, queued, watched)


@command("DISCARD", 1, "connection", "noscript")
def discard(call: Call) -> Reply:
    """Forget the queued commands, and what was watched."""
    if call.session.queued is None:
        raise CommandError("ERR DISCARD without MULTI")
    call.session.leave_transaction()
    call.session.watched = {}
    return OK


@command("WATCH", -2, "connection", "noscript", keys=(1, -1, 1))
def watch(call: Call) -> Reply:
    """Let EXEC do nothing if one of these keys changes before it."""
    session = call.session
    # In a transaction of its own: what changes later has a later stamp.
    stamps = session.space.read(lambda txn: _stamps(call, txn))
    session.watched = stamps | session.watched
    return OK


def _stamps(call: Call, txn: Txn) -> dict[tuple[int, bytes], int]:
    from equeue_rq._running import keyspace

    number = call.session.db
    db = keyspace(call.session, txn, number, False)
    return {(number, name): db.stamp(name) for name in call.args}


@command("UNWATCH", 1, "connection", "noscript")
def unwatch(call: Call) -> Reply:
    """Forget what was watched."""
    call.session.watched = {}
    return OK
