"""The timed loops that several works share. Each warms up on the store that it measures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benchmarks._session import Session
from benchmarks.contenders import Contender

PAYLOAD = "x" * 100
_WARM_UP_SHARE = 0.1


def round_trips(contender: Contender, count: int) -> None:
    """put, get and ack of one job, ``count`` times."""
    put, get, ack = contender.put, contender.get, contender.ack
    for _ in range(count):
        put(PAYLOAD)
        ack(get())


def puts(contender: Contender, count: int) -> None:
    put = contender.put
    for _ in range(count):
        put(PAYLOAD)


def batches(contender: Contender, count: int, size: int = 100) -> None:
    """``count`` jobs in batches of ``size``: put, get and ack of each batch."""
    payloads = [PAYLOAD] * size
    for _ in range(max(1, count // size)):
        contender.put_many(payloads)
        contender.ack_many(contender.get_many(size))


def seconds_each(
    loop: Callable[[Contender, int], None],
    contender: Contender,
    count: int,
    warm_up: int | None = None,
) -> float:
    """Seconds for each of ``count`` operations on an opened contender, after a warm-up.

    ``warm_up`` is its number of operations; None means a tenth of ``count``.
    """
    loop(contender, max(1, round(count * _WARM_UP_SHARE)) if warm_up is None else warm_up)
    start = time.perf_counter()
    loop(contender, count)
    return (time.perf_counter() - start) / count


def fresh_seconds_each(
    session: Session,
    loop: Callable[[Contender, int], None],
    make: Callable[[], Contender],
    count: int,
    warm_up: int | None = None,
) -> Callable[[], float]:
    """A measurement of ``loop`` on a store of its own, for ``Session.alternate``."""

    def measure() -> float:
        with session.opened(make()) as contender:
            return seconds_each(loop, contender, count, warm_up)

    return measure


def threaded_puts_per_second(contender: Contender, threads: int, count: int) -> float:
    """Throughput of ``threads`` threads that put ``count`` jobs each into one store."""
    puts(contender, max(1, round(count * _WARM_UP_SHARE)))
    barrier = threading.Barrier(threads + 1)

    def work() -> None:
        barrier.wait()
        puts(contender, count)
        barrier.wait()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    elapsed = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return threads * count / elapsed
