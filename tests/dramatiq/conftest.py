"""Fixtures of the tests of the Dramatiq adapter, and the servers to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import _servers
from tests.contract.dramatiq.capabilities import lacks


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a backend does not promise: that is no skip, there is nothing to run."""
    left_out = [item for item in items if lacks(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis-compatible server of this session."""
    try:
        with _servers.redis_server(tmp_path_factory.mktemp("redis")) as port:
            yield port
    except _servers.ServerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def rabbitmq_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a RabbitMQ node of this session."""
    try:
        with _servers.rabbitmq_server(tmp_path_factory.mktemp("rabbitmq")) as port:
            yield port
    except _servers.ServerMissing as missing:
        pytest.skip(str(missing))
