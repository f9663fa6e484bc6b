"""In what Dramatiq's backends differ: the capabilities that a test may ask for, and who has them.

A test that is not marked holds for every backend. `@needs(...)` names what it asks for beyond that;
it is not run on a backend that has less. StubBroker, RedisBroker, RabbitmqBroker, LMDBBroker, and
the results and rate limiter backends of the same makers:

| capability            | Stub | Redis | RabbitMQ | LMDB | means                                          |
|-----------------------|------|-------|----------|------|------------------------------------------------|
| DURABLE               |      | x     | x        | x    | messages outlive their broker object           |
| REQUEUES              |      | x     | x        | x    | what a worker did not start is delivered again |
| REQUEUES_IN_PLACE     |      |       | x        | x    | ... where it was, before what came later       |
| CLOSING_GIVES_BACK    | x    |       | x        | x    | also what a consumer never handed out          |
| ENDS_ANYWHERE         | x    | x     |          | x    | ack by a consumer other than the one that gave |
| WAITS                 | x    |       | x        | x    | a consumer waits, and a message ends the wait  |
| HOLDS_DELAYED         | x    | x     | x        |      | delayed messages wait in a worker's memory     |
| STORES_DELAYED        |      |       |          | x    | delayed messages wait where they are stored    |
| ACTOR_PRIORITY        |      |       |          | x    | an actor's priority orders the whole queue     |
| BROKER_PRIORITY       |      |       | x        | x    | `broker_priority` orders the whole queue       |
| BURIES_GARBAGE        |      |       | x        | x    | undecodable bytes become a dead letter         |
| FLUSHES_DELAYED       |      | x     | x        | x    | `flush` drops delayed messages too             |
| FLUSHES_DEAD          |      | x     | x        | x    | `flush` drops dead letters too                 |
| JOINS_RUNNING         | x    | x     |          | x    | `join` waits for what workers hold             |
| COUNTS                |      |       | x        | x    | `get_queue_message_counts`                     |
| PLAIN_NAMES           |      | x     | x        | x    | delay queues are not among the declared queues |
| REFUSES_UNDECLARED    | x    |       |          |      | `QueueNotFound` for a queue never declared     |
| WAITS_ITS_TIMEOUT     |      |       |          | x    | waits as long for a result as told, to the ms  |
| SHORT_WAITS           | x    |       |          | x    | a limiter's wait may be shorter than a second  |
| KEEPS_NOTIFICATIONS   |      | x     |          | x    | a notification is there for who waits later    |

RabbitMQ has no results and no rate limits: its binding uses the Stub's, and the last three lines
do not concern it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest


class Capability(enum.Enum):
    DURABLE = enum.auto()
    REQUEUES = enum.auto()
    REQUEUES_IN_PLACE = enum.auto()
    CLOSING_GIVES_BACK = enum.auto()
    ENDS_ANYWHERE = enum.auto()
    WAITS = enum.auto()
    HOLDS_DELAYED = enum.auto()
    STORES_DELAYED = enum.auto()
    ACTOR_PRIORITY = enum.auto()
    BROKER_PRIORITY = enum.auto()
    BURIES_GARBAGE = enum.auto()
    FLUSHES_DELAYED = enum.auto()
    FLUSHES_DEAD = enum.auto()
    JOINS_RUNNING = enum.auto()
    COUNTS = enum.auto()
    PLAIN_NAMES = enum.auto()
    REFUSES_UNDECLARED = enum.auto()
    WAITS_ITS_TIMEOUT = enum.auto()
    SHORT_WAITS = enum.auto()
    KEEPS_NOTIFICATIONS = enum.auto()


def who_has() -> dict[str, frozenset[Capability]]:
    """The table above: each column's capabilities, by its heading."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (__doc__ or "").splitlines()
        if line.startswith("|") and not line.startswith("|-")
    ]
    headings, *lines = rows
    return {
        heading: frozenset(Capability[line[0]] for line in lines if line[column] == "x")
        for column, heading in enumerate(headings)
        if 0 < column < len(headings) - 1
    }


STUB, REDIS, RABBITMQ, LMDB = who_has().values()


def needs(*capabilities: Capability) -> Callable[[Any], Any]:
    """Run this test only on backends that have all of these."""
    return pytest.mark.needs(*capabilities)


def lacks(item: pytest.Item) -> bool:
    """Whether a test asks for more than its class's backend has."""
    asked = {each for mark in item.iter_markers("needs") for each in mark.args}
    return not asked <= getattr(getattr(item, "cls", None), "capabilities", asked)
