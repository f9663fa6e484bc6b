"""The contract of rate limiter backends: on Dramatiq's, and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from dramatiq.rate_limits import RateLimiterBackend
from dramatiq.rate_limits.backends import RedisBackend, StubBackend

from equeue_dramatiq import LMDBRateLimiterBackend
from tests.contract.dramatiq import RateLimitsContract
from tests.contract.dramatiq.capabilities import LMDB, REDIS, STUB


@pytest.mark.once
class TestStubLimits(RateLimitsContract):
    capabilities = STUB

    class Backend:
        def __init__(self) -> None:
            self.only = StubBackend()

        def open(self) -> RateLimiterBackend:
            return self.only

    @pytest.fixture
    def backend(self) -> Backend:
        return self.Backend()


@pytest.mark.once
class TestRedisLimits(RateLimitsContract):
    capabilities = REDIS

    class Backend:
        def __init__(self, client: Any) -> None:
            self.client = client

        def open(self) -> RateLimiterBackend:
            return RedisBackend(client=self.client)

    @pytest.fixture
    def backend(self, redis_client: redis.Redis) -> Backend:
        return self.Backend(redis_client)


class TestLMDBLimits(RateLimitsContract):
    capabilities = LMDB

    class Backend:
        def __init__(self, path: Path) -> None:
            self.path = path
            self.opened: list[LMDBRateLimiterBackend] = []

        def open(self) -> RateLimiterBackend:
            self.opened.append(LMDBRateLimiterBackend(self.path, sync="off"))
            return self.opened[-1]

    @pytest.fixture
    def backend(self, store_path: Path) -> Iterator[Backend]:
        backend = self.Backend(store_path)
        yield backend
        for each in backend.opened:
            each.close()
