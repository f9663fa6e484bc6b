"""The actors of the Dramatiq part."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from benchmarks import brokers
from benchmarks._board import Pen
from benchmarks._served import Address


class Actors(NamedTuple):
    """A broker and the actors on it.

    ``count`` waits at the gate and notes that it ran; ``stamp`` notes the nanoseconds since the
    moment that it is given; ``echo`` returns its argument.
    """

    broker: Any
    count: Any
    stamp: Any
    echo: Any


def declare(name: str, address: Address, *, results: bool, pen: Pen | None = None) -> Actors:
    """The named broker at the address with its actors; only a worker process needs a pen."""
    import dramatiq
    from dramatiq.results import Results

    contender = brokers.make(name)
    broker = contender.broker(address)
    if results:
        broker.add_middleware(Results(backend=contender.results(address)))

    def count() -> None:
        assert pen is not None
        pen.pass_gate()
        pen.note()

    def stamp(sent: int) -> None:
        now = time.monotonic_ns()
        assert pen is not None
        pen.note(now - sent)

    def echo(value: int) -> int:
        return value

    options = {"broker": broker}
    return Actors(
        broker,
        dramatiq.actor(count, **options),
        dramatiq.actor(stamp, **options),
        dramatiq.actor(echo, **options, **({"store_results": True} if results else {})),
    )
