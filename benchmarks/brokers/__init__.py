"""The brokers of the Dramatiq part by name. The names are what tables and figures show."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks._served import Address, Catalogue
from benchmarks.brokers._contender import BrokerContender
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

_catalogue = Catalogue(_MAKERS)
make, installed = _catalogue.make, _catalogue.installed
serving, versions = _catalogue.serving, _catalogue.versions
