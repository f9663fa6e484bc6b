"""Messages on their way into the store: at once, together with others, or with the end of another one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dramatiq import Actor, Message

    from equeue_core import Queue, Store, Transaction

MAX_BROKER_PRIORITY = 255
"""The greatest ``broker_priority``, as in RabbitMQ."""

_ABOVE_ACTORS = float(1 << 32)
"""What one step of ``broker_priority`` weighs in steps of an actor's ``priority``."""

_FOREVER = 10**17
"""Milliseconds: three million years. A message that is to wait longer waits so long."""


@dataclass
class Put:
    """One message to be put, and what to call once it is there."""

    message: Message[Any]
    queue: Queue[bytes]
    payload: bytes
    priority: float
    run_at: float | None
    announce: Callable[[], None]

    def run(self) -> int:
        """Put it, in a commit of its own; the job's id."""
        job_id = self.queue.put(self.payload, priority=self.priority, run_at=self.run_at)
        self.announce()
        return job_id

    def add_to(self, transaction: Transaction) -> None:
        """Put it with the transaction; the caller announces it afterwards."""
        transaction.put(self.queue, self.payload, priority=self.priority, run_at=self.run_at)


class Batch(threading.local):
    """The puts that this thread collects; None: it does not."""

    puts: list[Put] | None = None


def run_together(store: Store, puts: list[Put]) -> None:
    """Put all in one commit, or none."""
    places = {(put.queue, put.priority, put.run_at) for put in puts}
    if len(places) == 1:  # the usual case, at two thirds of the time
        ((queue, priority, run_at),) = places
        queue.put_many((put.payload for put in puts), priority=priority, run_at=run_at)
    else:
        with store.transaction() as transaction:
            for put in puts:
                put.add_to(transaction)
    for put in puts:
        put.announce()


def rank(message: Message[Any], actor: Actor[Any, Any] | None) -> float:
    """The message's priority in the store: smaller runs first.

    Raises:
        ValueError: its ``broker_priority`` is none.
    """
    priority: int = 0 if actor is None else actor.priority
    urgency = message.options.get("broker_priority")
    if urgency is None:
        return priority
    if not isinstance(urgency, int) or not 0 <= urgency <= MAX_BROKER_PRIORITY:
        raise ValueError(
            f"broker_priority must be an int from 0 to {MAX_BROKER_PRIORITY}, not {urgency!r}"
        )
    return priority - urgency * _ABOVE_ACTORS


def due(message: Message[Any]) -> float | None:
    """When the message may run, in epoch seconds; None for at once."""
    eta = message.options.get("eta")
    if not isinstance(eta, (int, float)) or eta != eta:
        return None
    return max(-_FOREVER, min(eta, _FOREVER)) / 1000  # an infinite one, or an int that is no float
