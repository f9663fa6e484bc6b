"""Fixtures of the tests with real processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ._procs import Child
from ._remote import Remote

if not sys.platform.startswith("linux"):
    collect_ignore_glob = ["test_*.py"]  # /proc, strace, unshare, mount


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where this test's store will be."""
    return tmp_path / "store"


@pytest.fixture
def spawn() -> Iterator[Callable[..., Child]]:
    """Starts child processes; those that are left at the end are killed."""
    started: list[Child] = []

    def start(function: Callable[..., None], *args: object, **options: Any) -> Child:
        started.append(Child(function, *args, **options))
        return started[-1]

    yield start
    for child in started:
        child.close()


@pytest.fixture
def remote(spawn: Callable[..., Child], path: Path) -> Callable[..., Remote]:
    """Starts processes that open the store and carry out, step by step, what the test asks."""

    def start(*, prefix: tuple[str, ...] = (), at: Path | None = None, **options: Any) -> Remote:
        return Remote(spawn, at or path, prefix=prefix, **options)

    return start
