"""Reading the messages of the channels that a connection listens to."""

from __future__ import annotations

import math
import time
from functools import partial

from equeue_core.storage import Txn
from equeue_rq import _mailboxes as mailboxes
from equeue_rq._replies import Push, Reply
from equeue_rq._session import Disconnected, Session

_monotonic = time.monotonic  # references of our own: applications patch them
_sleep = time.sleep

_DISTANCE = 0.005
"""Seconds that the answer to another thread's command is under way.

A server's takes a while, and programs count on it: they unsubscribe for a thread and then tell it to stop.
With the answer at once it would listen again before it is told (redis-py's `run_in_thread`, RQ's workers).
"""


class NothingToRead(Exception):
    """Nothing came in time."""


def has_message(session: Session, timeout: float | None) -> bool:
    """Whether there is a message, or one comes within so many seconds (None: for ever); or an answer to a
    command that another thread sends meanwhile.

    Raises:
        Disconnected: the session has ended, or ends meanwhile.
        EQueueError: the store refuses the transaction.
    """
    if session.replies:
        return True
    deadline = math.inf if timeout is None else _monotonic() + timeout

    def wait() -> bool:
        while True:
            left = None if timeout is None else max(0.0, deadline - _monotonic())
            bells = [mailboxes.bell(session.id)]
            found = session.space.wait(bells, partial(_look, session), left)
            session.listen()
            if session.replies:
                _sleep(_DISTANCE)
                return True
            if not found or _take(session):
                return bool(found)

    return session.during(session.client.command, wait)


def next_reply(session: Session, timeout: float | None) -> Reply:
    """The next answer or message.

    Raises:
        NothingToRead: nothing comes within so many seconds (None: for ever).
        Disconnected, EQueueError: as for `has_message`.
    """
    while has_message(session, timeout):
        try:
            return session.replies.popleft()
        except IndexError:  # another thread reads as well
            pass
    raise NothingToRead


def _look(session: Session, txn: Txn) -> bool | None:
    if session.replies or session.is_called():
        return True
    return mailboxes.has_mail(txn, session.client.id)


def _take(session: Session) -> bool:
    """Take what is in the mailbox; whether there was anything."""
    taken = session.space.write(partial(mailboxes.take, number=session.client.id))
    if taken is None:
        session.close()
        raise Disconnected("Connection closed by server.")
    session.replies.extend(map(Push, taken))
    return bool(taken)
