"""The contract of results backends: on Dramatiq's, and on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from dramatiq.results import ResultBackend
from dramatiq.results.backends import RedisBackend, StubBackend

from equeue_dramatiq import LMDBResultBackend
from tests.contract.dramatiq import ResultsContract
from tests.contract.dramatiq.capabilities import LMDB, REDIS, STUB


@pytest.mark.once
class TestStubResults(ResultsContract):
    capabilities = STUB

    class Backend:
        def open(self, **options: Any) -> ResultBackend:
            return StubBackend(**options)

    @pytest.fixture
    def backend(self) -> Backend:
        return self.Backend()


@pytest.mark.once
class TestRedisResults(ResultsContract):
    capabilities = REDIS

    class Backend:
        def __init__(self, client: Any) -> None:
            self.client = client

        def open(self, **options: Any) -> ResultBackend:
            return RedisBackend(client=self.client, **options)

    @pytest.fixture
    def backend(self, redis_client: redis.Redis) -> Backend:
        return self.Backend(redis_client)


class TestLMDBResults(ResultsContract):
    capabilities = LMDB

    class Backend:
        def __init__(self, path: Path) -> None:
            self.path = path
            self.opened: list[LMDBResultBackend] = []

        def open(self, **options: Any) -> ResultBackend:
            self.opened.append(LMDBResultBackend(self.path, sync="off", **options))
            return self.opened[-1]

    @pytest.fixture
    def backend(self, store_path: Path) -> Iterator[Backend]:
        backend = self.Backend(store_path)
        yield backend
        for each in backend.opened:
            each.close()
