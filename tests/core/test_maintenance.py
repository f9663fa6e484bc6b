"""Backup, check, compact, configure."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from equeue_core import (
    Queue,
    Store,
    StoreAccessError,
    StoreBusy,
    StoreError,
    StoreOptionError,
)
from tests.contract.helpers import (
    LATER,
    assert_counts,
    drain,
    put_cancelled,
    put_done,
    put_failed,
    snapshot,
)
from tests.core.children import child

HOLD = "q = Queue(path); q.stats(); say('open'); hear(); q.close(); say('closed'); hear()"


@pytest.mark.contract("MNT-01")
def test_a_backup_is_a_store_with_the_same_jobs(store: Store, tmp_path: Path) -> None:
    queue, other = store.queue(), store.queue("other")
    put_done(queue)
    put_failed(queue)
    put_cancelled(queue)
    queue.put_many(["a", "b"], priority=3)
    queue.put("later", delay=LATER, unique="k")
    other.put("x")
    there = tmp_path / "backup"
    store.backup(there)
    with Store(there) as copy:
        assert copy.check().ok
        assert sorted(copy.queues()) == ["default", "other"]
        assert snapshot(copy.queue()) == snapshot(queue)
        assert copy.sync == store.sync
        assert drain(copy.queue()) == ["a", "b"]
        assert drain(copy.queue("other")) == ["x"]
    assert_counts(other, pending=1)


@pytest.mark.contract("MNT-01")
def test_a_backups_running_jobs_are_given_back(store: Store, tmp_path: Path) -> None:
    queue = store.queue()
    queue.put("x")
    record = queue.get_nowait()
    store.backup(tmp_path / "backup")
    with Queue(tmp_path / "backup") as copy:
        assert copy.get(timeout=60).payload == "x"
    record.ack()
    assert_counts(queue, done=1)


@pytest.mark.contract("MNT-01")
def test_a_backup_goes_into_a_new_or_empty_directory(store: Store, tmp_path: Path) -> None:
    store.queue().put("x")
    empty = tmp_path / "empty"
    empty.mkdir()
    store.backup(empty)
    with Queue(empty) as copy:
        assert copy.stats()["pending"] == 1
    with pytest.raises((StoreError, OSError, ValueError)):
        store.backup(empty)
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("precious")
    with pytest.raises((StoreError, OSError, ValueError)):
        store.backup(full)
    assert os.listdir(full) == ["notes.txt"]
    with pytest.raises(StoreAccessError, match="not an empty directory"):
        store.backup(full / "notes.txt")
    assert (full / "notes.txt").read_text() == "precious"


@pytest.mark.contract("MNT-01")
def test_a_store_is_not_backed_up_into_itself(store: Store) -> None:
    store.queue().put("x")
    with pytest.raises((StoreError, OSError, ValueError)):
        store.backup(store.path)
    assert store.check().ok


@pytest.mark.contract("MNT-01")
def test_a_backup_amid_work_is_consistent(store: Store, tmp_path: Path) -> None:
    one, two = store.queue("one"), store.queue("two")
    one.put_many(range(50))
    stop = threading.Event()
    errors: list[BaseException] = []

    def move() -> None:
        here, there = one, two
        try:
            while not stop.is_set():
                for _ in range(here.qsize()):
                    record = here.get_nowait()
                    with store.transaction() as tx:
                        tx.ack(record)
                        tx.put(there, record.payload)
                here, there = there, here
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        for number in range(5):
            store.backup(tmp_path / f"backup {number}")
    finally:
        stop.set()
        thread.join()
    assert not errors
    for number in range(5):
        with Store(tmp_path / f"backup {number}") as copy:
            assert copy.check().ok
            live = [copy.queue(name).stats() for name in ("one", "two")]
            assert sum(stats["pending"] + stats["running"] for stats in live) == 50


@pytest.mark.contract("MNT-02")
def test_a_sound_store_checks_clean(store: Store) -> None:
    report = store.check()
    assert report.ok
    assert list(report.problems) == []
    assert (report.jobs, report.queues) == (0, 0)
    queue = store.queue()
    put_done(queue)
    put_failed(queue)
    put_cancelled(queue)
    queue.put("scheduled", delay=LATER, unique="k", expires_in=LATER)
    queue.put("nacked")
    queue.get_nowait().nack("why")
    store.queue("leased", lease_time=LATER).put("x")
    record = store.queue("leased", lease_time=LATER).get_nowait()
    report = store.check()
    assert report.ok, report.problems
    assert (report.jobs, report.queues) == (6, 2)
    record.ack()


@pytest.mark.contract("MNT-03")
def test_compacting_makes_the_file_smaller_and_keeps_the_jobs(path: Path) -> None:
    with Store(path, sync="off") as store:
        queue = store.queue()
        queue.put_many(["x" * 5000] * 500)
        queue.put("kept", priority=9)
        queue.ack_many(queue.get_many(500, timeout=0))
        queue.purge("done")
        before_state = snapshot(queue)
        before, after = store.compact()
        assert after < before
        assert (path / "data.mdb").stat().st_size == after
        assert snapshot(queue) == before_state
        assert store.check().ok
        assert drain(queue) == ["kept"]
        assert queue.put("next") == 502
    with Queue(path) as queue:
        assert drain(queue) == ["next"]


@pytest.mark.contract("MNT-03")
def test_compacting_keeps_what_is_in_hand(store: Store) -> None:
    queue = store.queue()
    queue.put("x")
    record = queue.get_nowait()
    store.compact()
    assert queue.recover() == 0
    record.ack()
    assert_counts(queue, done=1)


@pytest.mark.contract("MNT-03")
def test_compacting_again_and_again(store: Store) -> None:
    queue = store.queue()
    for number in range(5):
        queue.put(number)
        before, after = store.compact()
        assert after <= before
    assert drain(queue) == list(range(5))


@pytest.mark.contract("MNT-04")
@pytest.mark.parametrize(
    "alone", [lambda store: store.compact(), lambda store: store.configure(sync="normal")]
)
def test_what_needs_the_store_for_itself_says_who_is_in_the_way(
    store: Store, path: Path, alone: Any
) -> None:
    queue = store.queue()
    queue.put("x")
    with child(HOLD, path) as other:
        assert other.hear() == "open"
        before = snapshot(queue)
        with pytest.raises(StoreBusy):
            alone(store)
        assert snapshot(queue) == before
        assert store.sync == "off"
        queue.put("y")
        other.say()
        assert other.hear() == "closed"
        alone(store)
        assert drain(queue) == ["x", "y"]


@pytest.mark.contract("SYN-01")
def test_a_new_store_is_full_unless_said_otherwise(path: Path) -> None:
    with Store(path) as store:
        store.queue().put("x")
        assert store.sync == "full"


@pytest.mark.contract("SYN-01")
@pytest.mark.parametrize("mode", ["full", "normal", "off", True, False])
def test_the_mode_is_stored_with_the_store(path: Path, mode: Any) -> None:
    means = {True: "full", False: "off"}.get(mode, mode)
    with Store(path, sync=mode) as store:
        store.queue().put("x")
    with Store(path) as store:
        store.queues()
        assert store.sync == means
    with Store(path, sync=mode) as store:
        assert drain(store.queue()) == ["x"]


@pytest.mark.contract("SYN-02")
@pytest.mark.parametrize("stored", ["full", "normal", "off"])
@pytest.mark.parametrize("asked", ["full", "normal", "off"])
@pytest.mark.parametrize("already_open", [True, False])
def test_another_mode_than_the_stores_own_is_refused(
    path: Path, stored: str, asked: str, already_open: bool
) -> None:
    if stored == asked:
        pytest.skip("this is the store's own")
    store = Store(path, sync=stored)
    store.queue().put("x")
    if not already_open:
        store.close()
    for attempt in (
        lambda: Store(path, sync=asked).queues(),
        lambda: Queue(path, sync=asked).put("y"),
        lambda: Queue(path, sync=asked).stats(),
    ):
        with pytest.raises(StoreOptionError, match="configure") as caught:
            attempt()
        assert isinstance(caught.value, ValueError)
        assert stored in str(caught.value)
    with Queue(path) as queue:
        assert_counts(queue, pending=1)
    store.close()


@pytest.mark.contract("SYN-03")
@pytest.mark.parametrize("mode", ["full", "normal", "off", True, False])
def test_the_mode_can_be_changed(path: Path, mode: Any) -> None:
    means = {True: "full", False: "off"}.get(mode, mode)
    with Store(path, sync="normal") as store:
        queue = store.queue()
        queue.put("before")
        store.configure(sync=mode)
        assert store.sync == means
        queue.put("after")
        assert drain(queue) == ["before", "after"]
    with Store(path) as store:
        store.queues()
        assert store.sync == means


@pytest.mark.contract("SYN-03")
@pytest.mark.parametrize("mode", ["sometimes", 3, "", b"off"])
def test_a_mode_that_is_none_is_refused(store: Store, mode: Any) -> None:
    store.queue().put("x")
    with pytest.raises((ValueError, TypeError)):
        store.configure(sync=mode)
    assert store.sync == "off"
    assert store.check().ok
