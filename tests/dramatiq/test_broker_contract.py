"""The broker contract: on Dramatiq's brokers, and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.dramatiq import BrokerContract
from tests.dramatiq.backends import LMDBBrokers, RabbitmqBrokers, RedisBrokers, StubBrokers


class TestStubBroker(BrokerContract):
    capabilities = StubBrokers.capabilities

    @pytest.fixture
    def backend(self) -> StubBrokers:
        return StubBrokers()


class TestRedisBroker(BrokerContract):
    capabilities = RedisBrokers.capabilities

    @pytest.fixture
    def backend(self, redis_port: int) -> Iterator[RedisBrokers]:
        backend = RedisBrokers(redis_port)
        yield backend
        backend.close()


class TestRabbitmqBroker(BrokerContract):
    capabilities = RabbitmqBrokers.capabilities

    @pytest.fixture
    def backend(self, rabbitmq_port: int) -> Iterator[RabbitmqBrokers]:
        backend = RabbitmqBrokers(rabbitmq_port)
        yield backend
        backend.close()


class TestLMDBBroker(BrokerContract):
    capabilities = LMDBBrokers.capabilities

    @pytest.fixture
    def backend(self, store_path: Path) -> Iterator[LMDBBrokers]:
        backend = LMDBBrokers(store_path)
        yield backend
        backend.close()
