"""A pytest plugin for the runs of RQ's tests."""

from __future__ import annotations

import multiprocessing
import os

import pytest
import redis

from equeue_rq import LMDBConnection


def pytest_configure(config: pytest.Config) -> None:
    connection = redis.Redis().connection_pool.make_connection()
    if isinstance(connection, LMDBConnection) != bool(os.environ.get("EQUEUE_UPSTREAM_STORE")):
        raise pytest.UsageError(f"RQ's tests would use {connection!r}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """End the workers that a failed test has left; Python would wait for them."""
    for process in multiprocessing.active_children():
        process.kill()
