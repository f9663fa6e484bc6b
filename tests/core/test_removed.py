"""The directory is deleted under a running process."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from equeue_core import Queue, StoreError, StoreRemoved
from tests.contract.helpers import WATCHDOG, wait_until


def is_noticed(queue: Queue) -> bool:
    try:
        queue.put("lost")
    except StoreRemoved:
        return True
    return False


def is_removed(path: Path) -> bool:
    """Remove it; not at the first try, if somebody makes a file in it meanwhile."""
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


@pytest.mark.contract("HND-12")
def test_every_verb_notices_that_the_directory_is_gone(store_path: Path) -> None:
    with Queue(store_path) as queue:
        queue.put("before")
        record = queue.get_nowait()
        shutil.rmtree(store_path)
        wait_until(lambda: is_noticed(queue), "the removal to be noticed")
        for verb in (
            queue.stats,
            queue.get_nowait,
            queue.jobs,
            record.ack,
            record.nack,
            queue.vacuum,
        ):
            with pytest.raises(StoreRemoved, match="make a new one"):
                verb()
        assert not store_path.exists()
    assert issubclass(StoreRemoved, StoreError)


@pytest.mark.contract("HND-12")
def test_a_waiting_consumer_notices(store_path: Path) -> None:
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            queue.get()
        except StoreRemoved as error:
            raised.append(error)

    with Queue(store_path) as queue:
        queue.stats()
        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_until(lambda: is_removed(store_path), "the directory is gone")
        waiter.join(WATCHDOG)
        assert raised


@pytest.mark.contract("HND-12")
def test_a_consumer_that_begins_to_wait_notices(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fifo = os.mkfifo

    def make_fifo_too_late(path: str, mode: int) -> None:
        shutil.rmtree(store_path)
        make_fifo(path, mode)

    with Queue(store_path) as queue:
        queue.stats()
        monkeypatch.setattr(os, "mkfifo", make_fifo_too_late)
        with pytest.raises(StoreRemoved):
            queue.get(timeout=WATCHDOG)


@pytest.mark.contract("HND-12")
def test_a_new_handle_makes_a_new_store(store_path: Path) -> None:
    old = Queue(store_path)
    old.put("before")
    shutil.rmtree(store_path)
    with Queue(store_path) as new:
        assert new.put("after") == 1
        wait_until(lambda: is_noticed(old), "the removal to be noticed")
        assert [job.payload for job in new.jobs()] == ["after"]
        old.close()
        assert new.get_nowait().payload == "after"
