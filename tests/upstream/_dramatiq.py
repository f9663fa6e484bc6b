"""Dramatiq's tests: which there are, and what they need."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.upstream import _archive, _left_out, _runs

# The longest first.
FILES = [
    "test_cli.py",
    "test_redis.py",
    "test_watch.py",
    "test_window_rate_limiter.py",
    "test_composition.py",
    "test_rabbitmq.py",
    "test_actors.py",
    "test_pidfile.py",
    "test_results.py",
    "test_worker.py",
    "test_stub_broker.py",
    "test_bucket_rate_limiter.py",
    "test_barrier.py",
    "test_callbacks.py",
    "test_concurrent_rate_limiter.py",
    "test_broker.py",
    "test_encoders.py",
    "test_generic_actors.py",
    "test_messages.py",
]
# They write files of fixed names under /tmp.
_ALONE = {"test_cli.py", "test_watch.py"}


def unpack(archive: Path, version: str, directory: Path) -> Path:
    """Unpack the tests, and put what their archive lacks beside them."""
    tests = _archive.unpack_tests(archive, directory)
    for path in (_runs.SUPPLIED / "dramatiq_tests").glob("*.py"):
        shutil.copy(path, tests / path.name)
    names = json.dumps(_left_out.of_version("dramatiq", version))
    (tests / "left_out.json").write_text(names, encoding="utf-8")
    return tests


def way(*, control: bool) -> _runs.Way:
    """On our broker and backends; or on Dramatiq's own in-memory ones, to test the fixtures."""

    @contextlib.contextmanager
    def environment(directory: Path) -> Iterator[dict[str, str]]:
        yield {
            "EQUEUE_UPSTREAM_STORES": str(directory),
            "EQUEUE_UPSTREAM_CONTROL": "1" if control else "",
        }

    return _runs.Way("tests.fixtures", environment, alone=_ALONE)
