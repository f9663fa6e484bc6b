"""Running commands in transactions: one alone, several together, and one that waits."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from equeue_core import DiskFull, EQueueError, QueueFull
from equeue_core.storage import MISTAKES, Halfway, Txn
from equeue_rq import _lua
from equeue_rq._clients import Message
from equeue_rq._commands._table import Blocked, Call, Command
from equeue_rq._keyspace import Keyspace, Kind, bell_of, sweep
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply
from equeue_rq._session import Session

Queued = tuple[Command, list[bytes]]

_NO_DB = cast(Keyspace, None)
"""The database of a command that needs no transaction."""

_ENTRY = 64
"""Bytes that storing a word takes beside the word, about."""

_WAITS_FOR = {"BZ": Kind.ZSET, "XR": Kind.STREAM}
"""Of which type a key must be that ends a wait, by the start of the command's name; others: a list."""

_log = logging.getLogger("equeue_rq")
_wall = time.time  # references of our own: applications patch time.time
_monotonic = time.monotonic


class Mistake(EQueueError):
    """A command's own code is at fault; what it wrote is undone."""


def _refusal(error: EQueueError) -> CommandError:
    """The answer to who asked for what could not be committed.

    Parameters:
        error: `Halfway` with a mistake, or that the store is full, for which Redis has a word as well.
    """
    if isinstance(error, Halfway):
        _log.error("%s", error, exc_info=error.__cause__)
        return CommandError(f"ERR internal error: {error}")
    return CommandError(f"OOM {error}")


# One command


def alone(session: Session, command: Command, args: list[bytes]) -> Reply:
    """The answer of a command in a transaction of its own; a refusal as a value.

    Raises:
        EQueueError: the store is closed, or refuses the transaction.
    """
    flags = command.flags
    if "connection" in flags:
        return run_one(_NO_DB, session, command, args)
    if "write" in flags:
        operation = partial(_write, session, session.db, command, args)
        if "script" in flags:
            return _run_script(session, operation, adds(command, args))
        return commit(session, operation, adds(command, args))
    return _look(session, partial(_read, session, session.db, command, args))


def _read(session: Session, number: int, command: Command, args: list[bytes], txn: Txn) -> Reply:
    return run_one(keyspace(session, txn, number, False), session, command, args)


def _write(session: Session, number: int, command: Command, args: list[bytes], txn: Txn) -> Reply:
    return run_one(keyspace(session, txn, number, True), session, command, args)


def _run_script(session: Session, operation: Callable[[Txn], Reply], adds: int) -> Reply:
    """The answer of a script. If the store is full it is run all the same: it may be there to make room.
    Then it is told that the store is full by the commands that add something.
    """
    try:
        _lua.prepare()
        return session.space.write(operation, adds)
    except CommandError as error:
        return error
    except Halfway as halfway:
        return _refusal(halfway)
    except (DiskFull, QueueFull):
        pass
    session.frugal = True
    try:
        return commit(session, operation, 0)
    finally:
        session.frugal = False


def keyspace(session: Session, txn: Txn, number: int, writes: bool) -> Keyspace:
    """The database of this number in a transaction, at its beginning."""
    now = int(_wall() * 1000)
    if writes:
        sweep(txn, now)
    return Keyspace(txn, session.space, number, now, writes)


def run_one(db: Keyspace, session: Session, command: Command, args: list[bytes]) -> Reply:
    """The answer of a command within a transaction; a refusal as a value."""
    try:
        return command.run(Call(db, args, session, command.name))
    except CommandError as error:
        return error
    except MISTAKES as error:
        if db is _NO_DB:
            raise
        # Others' operations may be in this transaction: it is undone, and run without this one.
        raise Halfway(Mistake(f"{command.name}: {error!r}")) from error


def adds(command: Command, args: list[bytes]) -> int:
    """About how many bytes of work the command brings in."""
    return sum(map(len, args)) + _ENTRY * len(args) if "adds" in command.flags else 0


def commit(session: Session, operation: Callable[[Txn], Any], adds: int) -> Any:
    """The result of `operation`, committed; a refusal as a value if the store is full.

    Raises:
        EQueueError: see `Space.write`.
    """
    try:
        return session.space.write(operation, adds)
    except (Halfway, DiskFull, QueueFull) as error:
        return _refusal(error)


def _look(session: Session, operation: Callable[[Txn], Any]) -> Any:
    """The result of `operation`, which only reads; a mistake as a refusal, as `commit` has it.

    Raises:
        EQueueError: the store is closed, or refuses the transaction.
    """
    try:
        return session.space.read(operation)
    except Halfway as error:
        return _refusal(error)


# Several commands


def together(
    session: Session,
    queued: Sequence[Queued],
    watched: dict[tuple[int, bytes], int] | None = None,
) -> Reply:
    """The answers of commands in one transaction, refusals among them as values; None if a watched key
    has changed.

    Raises:
        EQueueError: the store is closed, or refuses the transaction.
    """
    run = partial(_run_together, session, session.db, queued, watched)
    flags = frozenset[str]().union(*[command.flags for command, _ in queued])
    if "script" in flags:
        _lua.prepare()
    if "write" in flags:
        sum_of_adds = sum(adds(*each) for each in queued) if "adds" in flags else 0
        outcome = commit(session, partial(run, True), sum_of_adds)
    else:
        outcome = _look(session, partial(run, False))
    if not isinstance(outcome, tuple):
        return outcome
    replies, session.db = outcome
    if "connection" in flags:
        for number, (command, args) in enumerate(queued):
            # Those that concern the connection, once: transactions may be run again.
            if "connection" in command.flags and command.name != "SELECT":
                replies[number] = run_one(_NO_DB, session, command, args)
    return replies


def _run_together(
    session: Session,
    number: int,
    queued: Sequence[Queued],
    watched: dict[tuple[int, bytes], int] | None,
    writes: bool,
    txn: Txn,
) -> tuple[list[Reply], int] | None:
    db = keyspace(session, txn, number, writes)
    for (other, name), stamp in (watched or {}).items():
        if db.other(other).stamp(name) != stamp:
            return None
    replies: list[Reply] = []
    for command, args in queued:
        reply: Reply = None
        if "connection" not in command.flags:
            reply = run_one(db, session, command, args)
        elif command.name == "SELECT":
            reply = run_one(db, session, command, args)
            if not isinstance(reply, CommandError):
                db = db.other(int(args[0]))
        replies.append(reply.otherwise if type(reply) is Blocked else reply)
    return replies, db.number


# Waiting


class TimedOut(Exception):
    """A blocking command took longer than the session's patience."""


_CALLED = (object(),)
"""What a wait finds when another client wants something of this one."""

_UNBLOCKED = "UNBLOCKED client unblocked via CLIENT UNBLOCK"


def wait(session: Session, command: Command, args: list[bytes], blocked: Blocked) -> Reply:
    """The answer of a blocking command that has found nothing, as soon as it finds something.

    Raises:
        TimedOut: the session has no more patience.
        Disconnected: the session was closed or killed meanwhile.
        EQueueError: the store is closed, or refuses the transaction.
    """
    if blocked.again is not None:
        args = blocked.again
    ends = _monotonic() + (blocked.timeout or math.inf)
    gives_up = math.inf if session.patience is None else _monotonic() + session.patience
    client = session.client
    client.blocked = True
    session.show()
    try:
        while True:
            found = _wait_until(min(ends, gives_up), session, command, args, blocked.keys)
            if found is not _CALLED:
                break
            message = session.listen()
            if message is not None:
                return CommandError(_UNBLOCKED) if message is Message.FAIL else blocked.otherwise
    finally:
        client.blocked = False
        session.show()
    if found is None and gives_up < ends:
        raise TimedOut
    return blocked.otherwise if found is None else found[0]


def _wait_until(
    deadline: float, session: Session, command: Command, args: list[bytes], keys: list[bytes]
) -> tuple[Reply] | None:
    number = session.db
    operation = partial(_try_again, session, number, command, args, keys)
    bells = [bell_of(number, name) for name in keys]
    left = None if deadline == math.inf else max(0.0, deadline - _monotonic())
    try:
        return session.space.claim(bells, operation, left, adds(command, args), looked=True)
    except (Halfway, DiskFull, QueueFull) as error:
        return (_refusal(error),)


def _try_again(
    session: Session, number: int, command: Command, args: list[bytes], keys: list[bytes], txn: Txn
) -> tuple[Reply] | None:
    if session.is_called():
        return _CALLED
    db = keyspace(session, txn, number, True)
    if not _may_be_ready(db, command, keys):
        return None
    reply = run_one(db, session, command, args)
    return None if isinstance(reply, Blocked) else (reply,)


def _may_be_ready(db: Keyspace, command: Command, keys: list[bytes]) -> bool:
    """Whether it is worth trying. A key of another type does not end the wait with an error."""
    if command.name == "XREADGROUP":  # which is told that its stream is gone
        return True
    kind = _WAITS_FOR.get(command.name[:2], Kind.LIST)
    found = map(db.find, keys)
    return any(meta is not None and meta.kind is kind for meta in found)
