from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core import Queue, Store
from tests.contract.clock import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path, sync="off") as store:
        yield store


@pytest.fixture
def queue(store: Store) -> Iterator[Queue]:
    with store.queue() as queue:
        yield queue


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The engine's clock, to be moved."""
    clock = Clock()
    clock.install(monkeypatch)
    return clock
