"""From a command's words to its answer: transactions, subscriptions, pipelines, waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import equeue_rq._commands  # noqa: F401 - fills the table
from equeue_rq._commands._table import Blocked, Command, Several, find
from equeue_rq._messages import CommandError
from equeue_rq._replies import OK, QUEUED, Reply
from equeue_rq._running import Queued, alone, together, wait
from equeue_rq._session import Session

__all__ = ["execute", "execute_all"]

_NEVER_QUEUED = frozenset({"EXEC", "DISCARD", "QUIT", "RESET"})
_NEVER_INSIDE = frozenset({"MULTI", "WATCH"})
_SUBSCRIBING = frozenset(
    prefix + word for prefix in ("", "P", "S") for word in ("SUBSCRIBE", "UNSUBSCRIBE")
)
_WHILE_SUBSCRIBED = _SUBSCRIBING | {"PING", "QUIT", "RESET"}
_REFUSED_INSIDE = _NEVER_INSIDE | _SUBSCRIBING
_APART = _NEVER_QUEUED | _REFUSED_INSIDE
"""What is not run among the commands of a transaction."""
_TOGETHER = 256
"""Commands of a pipeline that share a transaction at most."""


def execute(session: Session, words: list[bytes]) -> Reply:
    """The answer to one command.

    Raises:
        CommandError: it was refused.
        TimedOut: it blocks longer than the session's patience.
        Disconnected: the session has ended.
        EQueueError: the store refuses the transaction.
    """
    try:
        command, args = find(words)
        _allow(session, command)
    except CommandError as error:
        session.broken = session.queued is not None
        if words[0].upper() == b"EXEC":
            raise _abort(session, error) from None
        raise
    if session.queued is not None and command.name not in _NEVER_QUEUED:
        session.queued.append((command, args))
        return QUEUED
    reply = _run(session, command, args)
    if isinstance(reply, CommandError):
        raise reply
    return reply


def execute_all(session: Session, commands: list[list[bytes]]) -> Iterator[Sequence[Reply]]:
    """The answers to commands that were sent at once, refusals as values: one or several at a time, as soon
    as they are there.

    Raises:
        TimedOut, Disconnected, EQueueError: as for `execute`; those before were run.
    """
    if len(commands) == 1:
        yield _replies(session, commands[0])
        return
    queued = _whole_transaction(session, commands)
    if queued is not None:
        yield [OK, *[QUEUED] * len(queued), _exec(session, queued)]
        return
    position = 0
    while position < len(commands):
        batch = _batch(session, commands, position)
        if len(batch) > 1:
            yield _run_batch(session, batch)
            position += len(batch)
        else:
            yield _replies(session, commands[position])
            position += 1


def _replies(session: Session, words: list[bytes]) -> Sequence[Reply]:
    """The answers to one command; there may be several."""
    try:
        reply = execute(session, words)
    except CommandError as error:
        return (error,)
    return reply.replies if type(reply) is Several else (reply,)


def _run(session: Session, command: Command, args: list[bytes]) -> Reply:
    def run() -> Reply:
        reply = alone(session, command, args)
        return wait(session, command, args, reply) if isinstance(reply, Blocked) else reply

    return session.during(command.name, run)


def _allow(session: Session, command: Command) -> None:
    if session.protocol == 2 and command.name not in _WHILE_SUBSCRIBED and session.is_subscribed:
        name = command.name.lower().replace(" ", "|")
        raise CommandError(
            f"ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
            "are allowed in this context"
        )
    if session.queued is not None and command.name in _REFUSED_INSIDE:
        raise CommandError(f"ERR Command '{command.name.lower()}' not allowed inside a transaction")


def _abort(session: Session, error: CommandError) -> CommandError:
    """EXEC itself is refused."""
    session.leave_transaction()
    session.watched = {}
    reason = str(error).partition(" ")[2]
    return CommandError(f"EXECABORT Transaction discarded because of: {reason}")


# Transactions


def _whole_transaction(session: Session, commands: list[list[bytes]]) -> list[Queued] | None:
    """What is between MULTI and EXEC, if that is all there is and nothing in it is refused."""
    if session.queued is not None or commands[0] != [b"MULTI"] or commands[-1] != [b"EXEC"]:
        return None
    queued = []
    for words in commands[1:-1]:
        try:
            command, args = find(words)
            _allow(session, command)
        except CommandError:
            return None
        if command.name in _APART:
            return None
        queued.append((command, args))
    return queued


def _exec(session: Session, queued: list[Queued]) -> Reply:
    def run() -> Reply:
        watched, session.watched = session.watched, {}
        return together(session, queued, watched)

    return session.during("EXEC", run)


def _batch(session: Session, commands: list[list[bytes]], position: int) -> list[Queued]:
    """The commands from there on that may share a transaction, which nobody can tell."""
    batch: list[Queued] = []
    if session.queued is not None:
        return batch
    for words in commands[position : position + _TOGETHER]:
        try:
            command, args = find(words)
            _allow(session, command)
        except CommandError:
            break
        if not command.flags.isdisjoint({"connection", "blocking"}):
            break
        batch.append((command, args))
    return batch


def _run_batch(session: Session, batch: Sequence[Queued]) -> Sequence[Reply]:
    replies: Sequence[Reply] = session.during(batch[-1][0].name, lambda: together(session, batch))
    return [replies] * len(batch) if isinstance(replies, CommandError) else replies
