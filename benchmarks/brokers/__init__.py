"""The brokers of the Dramatiq part by name. The names are what tables and figures show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks._session import Session
from benchmarks.brokers._contender import Address, BrokerContender
from benchmarks.brokers.lmdb import Lmdb
from benchmarks.brokers.rabbitmq import Rabbitmq
from benchmarks.brokers.redis import Redis
from benchmarks.brokers.stub import Stub

STUB = "StubBroker"
OFF = "LMDBBroker, off"
NORMAL = "LMDBBroker, normal"
FULL = "LMDBBroker, full"
REDIS = "RedisBroker"
REDIS_FLUSHED = "RedisBroker, appendfsync always"
RABBITMQ = "RabbitmqBroker"
RABBITMQ_CONFIRMED = "RabbitmqBroker, confirmed"
RABBITMQ_WITH_RESULTS = "RabbitmqBroker and RedisBackend"

_MAKERS: dict[str, Callable[[], BrokerContender]] = {
    STUB: Stub,
    OFF: lambda: Lmdb("off"),
    NORMAL: lambda: Lmdb("normal"),
    FULL: lambda: Lmdb("full"),
    REDIS: Redis,
    REDIS_FLUSHED: lambda: Redis(flushed=True),
    RABBITMQ: Rabbitmq,
    RABBITMQ_CONFIRMED: lambda: Rabbitmq(confirmed=True),
    RABBITMQ_WITH_RESULTS: lambda: Rabbitmq(results=True),
}

__all__ = ["Address", "BrokerContender", "installed", "make", "serving", "versions"]


def make(name: str) -> BrokerContender:
    """A new contender whose server is not started."""
    return _MAKERS[name]()


def installed(wanted: Iterable[str]) -> list[str]:
    """Those of the named brokers whose packages and servers are here."""
    return [name for name in wanted if make(name).installed()]


@contextmanager
def serving(session: Session, wanted: Iterable[str]) -> Iterator[dict[str, BrokerContender]]:
    """Those of the named brokers that are installed, with their servers up."""
    with session.fresh() as directory, ExitStack() as stack:
        found = {}
        for number, name in enumerate(installed(wanted)):
            contender = make(name)
            stack.callback(contender.stop)
            contender.start(directory / str(number))
            found[name] = contender
        yield found


def versions() -> dict[str, str]:
    """Versions of all that takes part."""
    found: dict[str, str] = {}
    here = installed(_MAKERS)
    for name in here:
        found.update(make(name).versions())
    missing = [name for name in _MAKERS if name not in here]
    if missing:
        found["left out, not installed"] = "; ".join(missing)
    return found
