"""Fixtures of the tests of the RQ adapter, and the server to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_rq._session import Session
from tests import server_fixtures
from tests.rq._helpers import Caller
from tests.rq.differential import Pair, ServerClient, StoreClient

redis_port = server_fixtures.redis_port


@pytest.fixture
def session(store_path: Path) -> Iterator[Session]:
    """A connection to a new store."""
    session = Session(store_path, sync="off")
    yield session
    session.close()


@pytest.fixture(scope="module", params=[2, 3], ids=["RESP2", "RESP3"])
def pair(
    request: pytest.FixtureRequest, redis_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Two clients of the server, and two of a store, in one version of the protocol."""
    protocol = request.param
    path = tmp_path_factory.mktemp("store") / "data"
    servers = [ServerClient(redis_port, protocol) for _ in range(2)]
    stores = [StoreClient(path, protocol) for _ in range(2)]
    yield Pair(servers, stores)
    for client in (*servers, *stores):
        client.close()


@pytest.fixture
def call(session: Session) -> Caller:
    """Commands to a new store, as calls."""
    return Caller(session)
