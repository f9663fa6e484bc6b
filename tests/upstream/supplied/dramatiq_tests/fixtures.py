"""The fixtures that Dramatiq's tests ask for, as a pytest plugin. Its archive lacks those it uses itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import dramatiq
import pytest
from dramatiq.rate_limits import RateLimiterBackend
from dramatiq.results import ResultBackend

from .common import worker

if os.environ.get("EQUEUE_UPSTREAM_CONTROL"):
    from .control import Memory, RateLimits, Results
else:
    from . import rabbitmq, redis
    from .backends import RateLimits, Results
    from .memory import Memory


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what is left out, and complain of what is left out but not there."""
    must_exist: dict[str, bool] = json.loads(
        Path(__file__).with_name("left_out.json").read_text(encoding="utf-8")
    )
    for item in items:
        # As many messages as Lua cannot unpack. There is no Lua here: fewer will do.
        if hasattr(item.module, "LUA_MAX_UNPACK_SIZE"):
            item.module.LUA_MAX_UNPACK_SIZE = 250
    kept, dropped, found = [], [], set()
    for item in items:
        name = f"{item.path.name}::{item.name.partition('[')[0]}"
        (dropped if name in must_exist else kept).append(item)
        found.add(name)
    files = {name.partition("::")[0] for name in found}
    stale = [
        name
        for name, must in must_exist.items()
        if must and "::" in name and name.partition("::")[0] in files and name not in found
    ]
    if stale and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"left out, but not there: {stale}")
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


def _in_use(broker: dramatiq.Broker) -> Iterator[dramatiq.Broker]:
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    try:
        yield broker
    finally:
        broker.close()


@pytest.fixture
def stub_broker(tmp_path: Path) -> Iterator[dramatiq.Broker]:
    yield from _in_use(Memory(tmp_path / "data"))


@pytest.fixture
def redis_broker(tmp_path: Path) -> Iterator[dramatiq.Broker]:
    yield from _in_use(redis.Broker(tmp_path / "data"))


@pytest.fixture
def rabbitmq_broker(tmp_path: Path) -> Iterator[dramatiq.Broker]:
    yield from _in_use(rabbitmq.Broker(tmp_path / "data"))


@pytest.fixture
def stub_worker(stub_broker: dramatiq.Broker) -> Iterator[dramatiq.Worker]:
    with worker(stub_broker, worker_timeout=100) as running:
        yield running


@pytest.fixture
def redis_worker(redis_broker: dramatiq.Broker) -> Iterator[dramatiq.Worker]:
    with worker(redis_broker, worker_timeout=100) as running:
        yield running


@pytest.fixture
def rabbitmq_worker(rabbitmq_broker: dramatiq.Broker) -> Iterator[dramatiq.Worker]:
    with worker(rabbitmq_broker, worker_timeout=100) as running:
        yield running


@pytest.fixture(params=["broker's store", "own store"])
def result_backend(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ResultBackend]:
    """In the broker's store, a result is committed together with the end of its message."""
    yield from _closing(
        Results(tmp_path / ("data" if request.param == "broker's store" else "results"))
    )


@pytest.fixture
def redis_result_backend(tmp_path: Path) -> Iterator[ResultBackend]:
    yield from _closing(Results(tmp_path / "data"))


@pytest.fixture
def rate_limiter_backend(tmp_path: Path) -> Iterator[RateLimiterBackend]:
    yield from _closing(RateLimits(tmp_path / "data"))


_Backend = TypeVar("_Backend", ResultBackend, RateLimiterBackend)


def _closing(backend: _Backend) -> Iterator[_Backend]:
    yield backend
    if hasattr(backend, "close"):  # Dramatiq's own have none
        backend.close()


@pytest.fixture
def start_cli(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the `dramatiq` command; it is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []
    _remove_files(request.path.name)

    def start(
        broker: str, *, extra_args: tuple[str, ...] = (), **options: Any
    ) -> subprocess.Popen[bytes]:
        # When it reloads, the command starts itself anew by its name.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        command = [sys.executable, "-m", "dramatiq", broker, *extra_args]
        process = subprocess.Popen(command, env={**os.environ, "PATH": path}, **options)
        started.append(process)
        if "--watch" in extra_args:
            # The command watches a moment after its workers have started, and says to nobody when. A
            # message is through sooner, and then the test changes a file too early.
            time.sleep(2)
        return process

    yield start
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    _remove_files(request.path.name)


# Other files run at the same time: each removes its own.
_FILES = {
    "test_cli.py": ["dramatiq-cli-*", "dramatiq-dummy-not-used"],
    "test_watch.py": ["dramatiq-loaded-at"],
}


def _remove_files(file: str) -> None:
    """What the tests of the command write, where the next one could take it for its own."""
    for pattern in _FILES.get(file, []):
        for path in Path("/tmp").glob(pattern):
            path.unlink()
