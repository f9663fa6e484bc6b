"""Servers that several directories of tests compare with, as fixtures for their conftest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import _servers


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis-compatible server of this session."""
    try:
        with _servers.redis_server(tmp_path_factory.mktemp("redis")) as port:
            yield port
    except _servers.ServerMissing as missing:
        pytest.skip(str(missing))
