"""From a command's words to its answer: one transaction for each command, MULTI or script."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import equeue_rq._commands  # noqa: F401 - fills the table
from equeue_core import EQueueError
from equeue_core.storage import Halfway, Txn, wall
from equeue_rq._commands._table import Blocked, Call, Command, find
from equeue_rq._keyspace import Keyspace, sweep
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply
from equeue_rq._session import Session

__all__ = ["Blocked", "execute", "run_inside"]

_NO_DB = cast(Keyspace, None)
"""The database of a command that needs no transaction."""

_ENTRY = 64
"""Bytes that storing a word takes beside the word, about."""

_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""What a mistake in a command's own code raises. Not `Exception`: a time limit's comes from outside."""


class Mistake(EQueueError):
    """A command's own code is at fault; what it wrote is undone."""


def execute(session: Session, words: list[bytes]) -> Reply:
    """The answer to one command.

    Raises:
        CommandError: it was refused.
        EQueueError: the store is closed, or refuses the transaction.
    """
    command, args = find(words)
    reply = run_alone(session, command, args)
    if isinstance(reply, Blocked):
        return _wait(session, command, args, reply)
    if isinstance(reply, CommandError):
        raise reply
    return reply


def run_alone(session: Session, command: Command, args: list[bytes]) -> Reply:
    """The answer of a command in a transaction of its own; a refusal as a value."""
    flags = command.flags
    if "connection" in flags:
        try:
            return command.run(Call(_NO_DB, args, session, command.name))
        except CommandError as error:
            return error
    number = session.db
    if "write" not in flags:
        return session.space.read(partial(_read, session, number, command, args))
    adds = sum(map(len, args)) + _ENTRY * len(args) if "adds" in flags else 0
    return commit(session, partial(_write, session, number, command, args), adds)


def _read(session: Session, number: int, command: Command, args: list[bytes], txn: Txn) -> Reply:
    db = Keyspace(txn, session.space, number, int(wall() * 1000), False)
    try:
        return command.run(Call(db, args, session, command.name))
    except CommandError as error:
        return error


def _write(session: Session, number: int, command: Command, args: list[bytes], txn: Txn) -> Reply:
    now = int(wall() * 1000)
    sweep(txn, now)
    db = Keyspace(txn, session.space, number, now, True)
    return run_one(db, session, command, args)


def run_one(db: Keyspace, session: Session, command: Command, args: list[bytes]) -> Reply:
    """The answer of a command within a transaction; a refusal as a value."""
    try:
        return command.run(Call(db, args, session, command.name))
    except CommandError as error:
        return error
    except _MISTAKES as error:
        # Others' operations may be in this transaction: it is undone, and run without this one.
        raise Halfway(Mistake(f"{command.name}: {error!r}")) from error


def run_inside(db: Keyspace, session: Session, words: list[bytes]) -> Reply:
    """The answer of a command that a script calls in its transaction.

    Raises:
        CommandError: it was refused.
    """
    command, args = find(words)
    if "noscript" in command.flags or "connection" in command.flags:
        raise CommandError("ERR This Redis command is not allowed from script")
    reply = command.run(Call(db, args, session, command.name))
    return None if isinstance(reply, Blocked) else reply


def commit(session: Session, operation: Callable[[Txn], Any], adds: int) -> Any:
    """The result of `operation`, committed.

    Raises:
        EQueueError: see `Space.write`.
    """
    try:
        return session.space.write(operation, adds)
    except Halfway as halfway:
        raise halfway.refusal from halfway.refusal.__cause__


def _wait(session: Session, command: Command, args: list[bytes], blocked: Blocked) -> Reply:
    raise NotImplementedError
