"""Messages that are none: whatever is in a queue, its consumers go on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq import Middleware, Worker
from dramatiq.middleware import SkipMessage

from equeue_dramatiq import LMDBBroker
from tests.contract.helpers import wait_until

GOOD: dict[str, Any] = {
    "queue_name": "default",
    "actor_name": "work",
    "args": [1],
    "kwargs": {},
    "options": {},
    "message_id": "id",
    "message_timestamp": 1,
}
VALUES = (None, 1, 1.5, True, "text", [], [[]], {})
OPTIONS = ("eta", "retries", "max_retries", "time_limit", "max_age", "pipe_target", "on_success")


def malformed() -> Iterator[bytes]:
    yield from (b"", b"\xff", b"{}", b"null", b"[]", b'"text"')
    yield json.dumps({**GOOD, "more": 1}).encode()
    for key in GOOD:
        yield json.dumps({other: GOOD[other] for other in GOOD if other != key}).encode()
        yield from (json.dumps({**GOOD, key: value}).encode() for value in VALUES)
    for option in OPTIONS:
        for value in (*VALUES, float("inf"), float("nan")):
            yield json.dumps({**GOOD, "options": {option: value, "throws": None}}).encode()


@pytest.fixture
def silence() -> Iterator[None]:
    """Dramatiq cannot even log some of these, which pytest's handler makes an error of."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.contract("DRM-07")
@pytest.mark.usefixtures("silence")
def test_a_worker_goes_on_whatever_is_in_its_queue(broker: LMDBBroker) -> None:
    done = []

    @dramatiq.actor(max_retries=0)
    def work(*arguments: Any, **options: Any) -> None: ...

    @dramatiq.actor
    def good(number: int) -> None:
        done.append(number)

    queue = broker.queue("default")
    payloads = list(malformed())
    for number, payload in enumerate(payloads):
        queue.put(payload)
        good.send(number)
    worker = Worker(broker, worker_threads=2, worker_timeout=50)
    worker.start()
    try:
        wait_until(lambda: len(done) == len(payloads), "every good message is done")
        wait_until(lambda: not queue.stats()["running"], "no message is in hand")
    finally:
        worker.stop()
    assert sorted(done) == list(range(len(payloads)))
    assert queue.stats()["pending"] == 0
    assert queue.stats()["failed"] > 20


@pytest.mark.contract("DRM-07")
@pytest.mark.parametrize("wrong", [{"actor_name": []}, {"options": None}, {"args": None}])
def test_it_becomes_a_dead_letter_with_its_bytes(broker: LMDBBroker, wrong: dict[str, Any]) -> None:
    payload = json.dumps({**GOOD, **wrong}).encode()
    broker.queue("default").put(payload)
    assert next(broker.consume("default", timeout=1000)) is None
    (letter,) = broker.queue("default").jobs()
    assert (letter.state.value, letter.payload) == ("failed", payload)
    assert letter.errors[-1].message


def test_what_cannot_be_handed_over_keeps_no_place_from_other_messages(broker: LMDBBroker) -> None:
    class Refuses(Middleware):
        def before_delay_message(self, broker: Any, message: Any) -> None:
            raise SkipMessage

    @dramatiq.actor
    def work() -> None: ...

    @dramatiq.actor(priority=-1)
    def urgent() -> None: ...

    broker.add_middleware(Refuses())
    consumer = broker.consume("default", prefetch=1, timeout=60_000)
    work.send_with_options(delay=1)
    with pytest.raises(SkipMessage):
        next(consumer)
    urgent.send()
    message = next(consumer)
    assert message is not None
    assert message.actor_name == "urgent"
