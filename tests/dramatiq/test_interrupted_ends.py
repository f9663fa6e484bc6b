"""Time limits and aborts throw exceptions into threads, and one may come when the actor has just ended."""

from __future__ import annotations

from typing import Any

import dramatiq
import pytest
from dramatiq import Middleware
from dramatiq.middleware import Retries
from dramatiq.middleware.threading import Interrupt

from equeue_core import Record
from equeue_dramatiq import LMDBBroker

WATCHDOG = 20_000  # milliseconds


class Limit(Interrupt):
    """As a time limit: thrown into the thread from outside."""


@pytest.mark.contract("DRE-06")
def test_a_message_of_whose_end_nobody_was_told_runs_again(broker: LMDBBroker) -> None:
    """The exception came before Dramatiq could call the first middleware."""

    @dramatiq.actor
    def work() -> None: ...

    work.send()
    consumer = broker.consume("default", timeout=WATCHDOG)
    message = next(consumer)
    assert message is not None
    broker.emit_before("process_message", message)
    consumer.ack(message)
    (again,) = broker.queue("default").jobs()
    assert (again.state.value, again.retries) == ("pending", 1)


@pytest.mark.contract("DRE-06")
@pytest.mark.parametrize("retries", [True, False])
def test_a_message_whose_end_was_interrupted_runs_again(broker: LMDBBroker, retries: bool) -> None:
    """The retry may be missing: Dramatiq acks all the same, and the message would be lost."""

    class Interrupted(Middleware):
        def after_process_message(self, broker: Any, message: Any, **_: Any) -> None:
            raise Limit

    # Middleware is told of an end in the reverse order.
    broker.add_middleware(Interrupted(), **{"before" if retries else "after": Retries})

    @dramatiq.actor
    def work() -> None: ...

    work.send()
    consumer = broker.consume("default", timeout=WATCHDOG)
    message = next(consumer)
    assert message is not None
    with pytest.raises(Limit):
        broker.emit_after("process_message", message, exception=RuntimeError("it failed"))
    consumer.ack(message)
    (again,) = broker.queue("default").jobs()
    assert (again.state.value, again.retries) == ("pending", 1)
    message = next(consumer)
    assert message is not None
    consumer.ack(message)
    assert broker.queue("default").jobs() == []


@pytest.mark.contract("DRE-06")
def test_a_message_whose_ack_was_interrupted_is_for_others_at_once(
    broker: LMDBBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dramatiq.actor
    def work() -> None: ...

    work.send()
    consumer = broker.consume("default", timeout=WATCHDOG)
    message = next(consumer)
    assert message is not None

    def interrupted(record: object) -> None:
        raise Limit

    with monkeypatch.context() as patched:
        patched.setattr(Record, "ack", interrupted)
        with pytest.raises(Limit):
            consumer.ack(message)
    (job,) = broker.queue("default").jobs()
    assert (job.state.value, job.retries) == ("pending", 0)
