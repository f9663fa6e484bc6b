"""The parts of the suite: each has works of its own and a page of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import brokers, connections, contenders, works
from benchmarks.works import dramatiq as dramatiq_works
from benchmarks.works import rq as rq_works
from benchmarks.works._work import Work


@dataclass(frozen=True)
class Part:
    """Works that run together; ``page`` is the file in docs/ that a complete run of them replaces.

    ``heading`` and ``about`` begin the page, ``versions`` tells what takes part, and ``panels`` are the
    titles of the comparisons in its plot.
    """

    name: str
    works: tuple[Work, ...]
    page: str
    heading: str
    about: str
    versions: Callable[[], dict[str, str]]
    panels: tuple[str, ...]


CORE = Part(
    name="core",
    works=works.WORKS,
    page="benchmarks.md",
    heading="Benchmarks",
    about=(
        "The same work for equeue and its peers. The adapters for [Dramatiq](benchmarks-dramatiq.md)\n"
        "and [RQ](benchmarks-rq.md) have pages of their own."
    ),
    versions=contenders.versions,
    panels=(
        "put+get+ack, nothing flushed",
        "put+get+ack, flushed",
        "put to claimed in another process, 1 waiter, median",
        'put, sync="full", throughput by threads',
    ),
)

DRAMATIQ = Part(
    name="dramatiq",
    works=dramatiq_works.WORKS,
    page="benchmarks-dramatiq.md",
    heading="Benchmarks of the Dramatiq adapter",
    about=(
        "The same work for equeue's LMDBBroker and the brokers that Dramatiq brings along: StubBroker,\n"
        "which keeps messages in the memory of one process, RedisBroker on Valkey, and RabbitmqBroker on\n"
        "RabbitMQ; the servers run on the same machine and are reached over loopback TCP. The queue\n"
        "below the broker is measured on [another page](benchmarks.md)."
    ),
    versions=brokers.versions,
    panels=dramatiq_works.PANELS,
)

RQ = Part(
    name="rq",
    works=rq_works.WORKS,
    page="benchmarks-rq.md",
    heading="Benchmarks of the RQ adapter",
    about=(
        "RQ on equeue's LMDBRedis, and on redis-py's own client with a server, Valkey, which runs on the\n"
        "same machine and is reached over loopback TCP: one that persists nothing, and one that flushes\n"
        "its log at every command. The queue below is measured on [another page](benchmarks.md)."
    ),
    versions=connections.versions,
    panels=rq_works.PANELS,
)

PARTS = (CORE, DRAMATIQ, RQ)
