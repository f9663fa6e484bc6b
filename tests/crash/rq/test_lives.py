"""The files by which it is known which workers live."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core.storage import Descriptor, open_file
from equeue_rq import _lives as lives

pytestmark = pytest.mark.once


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    assert os.listdir(tmp_path / lives.DIRECTORY) == []


def test_a_life_begins_although_its_file_is_taken_for_a_left_over_one(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks for dead workers removes files without a name; this one has none yet."""
    removed = []

    def opened(path: str, flags: int) -> Descriptor:
        if flags & os.O_CREAT and not removed:
            removed.append(path)
            os.close(os.open(path, flags, 0o600))
            assert list(lives.dead(store, 0, "rq:worker:")) == []
            assert not os.path.exists(path)
            raise FileNotFoundError(path)  # when root looks whose the new file is to be
        return open_file(path, flags)

    monkeypatch.setattr(lives, "open_file", opened)
    life = lives.begin(store, 0, "rq:worker:one")
    assert removed
    assert life is not None
    assert list(lives.dead(store, 0, "rq:worker:")) == []
    life.end()
