"""The broker contract: on Dramatiq's brokers, and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.dramatiq import BrokerContract
from tests.contract.dramatiq.capabilities import LMDB, RABBITMQ, REDIS, STUB
from tests.dramatiq.backends import LMDBBrokers, RabbitmqBrokers, RedisBrokers, StubBrokers


@pytest.mark.once
class TestStubBroker(BrokerContract):
    capabilities = STUB

    @pytest.fixture
    def backend(self) -> StubBrokers:
        return StubBrokers()


@pytest.mark.once
class TestRedisBroker(BrokerContract):
    capabilities = REDIS

    @pytest.fixture
    def backend(self, redis_port: int) -> Iterator[RedisBrokers]:
        backend = RedisBrokers(redis_port)
        yield backend
        backend.close()


@pytest.mark.once
class TestRabbitmqBroker(BrokerContract):
    capabilities = RABBITMQ

    @pytest.fixture
    def backend(self, rabbitmq_port: int) -> Iterator[RabbitmqBrokers]:
        backend = RabbitmqBrokers(rabbitmq_port)
        yield backend
        backend.close()


class TestLMDBBroker(BrokerContract):
    capabilities = LMDB

    @pytest.fixture
    def backend(self, store_path: Path) -> Iterator[LMDBBrokers]:
        backend = LMDBBrokers(store_path)
        yield backend
        backend.close()
