"""Fixtures of the tests of the Dramatiq adapter, and the servers to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dramatiq
import pytest
import redis

from equeue_dramatiq import LMDBBroker
from tests import _servers, server_fixtures
from tests.contract.dramatiq.capabilities import lacks

redis_port = server_fixtures.redis_port


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a backend does not promise: that is no skip, there is nothing to run."""
    left_out = [item for item in items if lacks(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def rabbitmq_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a RabbitMQ node of this session."""
    try:
        with _servers.rabbitmq_server(tmp_path_factory.mktemp("rabbitmq")) as port:
            yield port
    except _servers.ServerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def redis_client(redis_port: int) -> Iterator[redis.Redis]:
    """A client of that server, which is emptied afterwards."""
    with redis.Redis("127.0.0.1", redis_port) as client:
        yield client
        client.flushall()


@pytest.fixture
def broker(store_path: Path) -> Iterator[LMDBBroker]:
    """Our broker, as the global one."""
    broker = LMDBBroker(store_path, sync="off")
    dramatiq.set_broker(broker)
    yield broker
    broker.close()
