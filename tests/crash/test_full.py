"""No room: on the disk, or within the size that the user set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from equeue_core import DiskFull, Queue, QueueFull

from . import _disks
from ._ledger import assert_sound
from ._mounts import Filler, mounted
from ._procs import Child
from ._remote import Remote

Starter = Callable[..., Remote]
MIB = 1 << 20
SIZE = 8 * MIB


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    with mounted(request.param, tmp_path / "disk", SIZE) as place:
        yield place


@pytest.fixture
def start(disk: Path, spawn: Callable[..., Child]) -> Iterator[Starter]:
    """Processes that use a store on the small disk; they are gone before it is unmounted."""
    children: list[Child] = []

    def begin(**options: Any) -> Remote:
        one = Remote(spawn, disk / "store", **options)
        children.append(one.child)
        return one

    yield begin
    for child in children:
        child.kill()


@pytest.mark.parametrize("sync", ["full", "normal", "off"])
def test_a_disk_that_others_fill(disk: Path, start: Starter, sync: str) -> None:
    filler = Filler(disk)
    one = start(sync=sync)
    before = [one.call("put", "x" * 1000) for _ in range(40)]
    filler.fill()

    ids, error, message = one.call("fill", 1000)
    assert error == "DiskFull", message
    assert "disk" in message.lower() or "space" in message.lower() or "room" in message.lower()
    there = before + ids
    assert one.call("stats")["pending"] == len(there), "what was refused is not there"

    # What makes no new work goes on, in this process and in another.
    two = start()
    for _ in range(8):
        for process in (one, two):
            acked = process.call("get", 10)["id"]
            process.call("complete", "ack", acked)
            nacked = process.call("get", 10)["id"]
            process.call("complete", "nack", nacked)
            assert process.call("state", nacked) == "pending"
            pending = process.call("stats")["pending"]
            assert len(process.call("listed", "pending")) == min(100, pending)
            # Nor do producers get at the room that this needs, however often they try.
            more, error, _ = process.call("fill", 1000)
            assert error == "DiskFull"
            there += more

    filler.remove()
    for process in (one, two):
        there.append(process.call("put", "room again"))
    one.call("drain")
    two.call("drain")
    assert [one.call("state", job_id) for job_id in there] == ["done"] * len(there)
    with Queue(disk / "store") as queue:
        assert queue.stats()["done"] == queue.stats()["total"]
        assert_sound(queue.store)


@pytest.mark.parametrize("sync", ["full", "off"])
def test_threads_that_are_refused_disturb_none_that_complete(
    disk: Path, spawn: Callable[..., Child], sync: str
) -> None:
    with Queue(disk / "store", sync=sync) as queue:
        queue.put_many(["x" * 100] * 1000)
    Filler(disk).fill()
    child = spawn(_disks.put_beside_ack, disk / "store")
    acked, refused = map(int, child.line().split())
    child.finish()
    assert acked == 1000
    assert refused > 0


def test_a_disk_that_the_queue_fills_itself(disk: Path, start: Starter) -> None:
    one = start(sync="off", vacuum_interval=0.001)
    ids, error, message = one.call("fill", 5000)
    assert error == "DiskFull", message
    assert len(ids) * 5000 > SIZE / 4, "it was refused long before the disk was full"
    for job_id in ids:
        assert one.call("state", job_id) == "pending"

    drained = one.call("drain")
    assert drained == ids, "each once, in order"
    again, error, _ = one.call("fill", 5000)
    assert len(again) > len(ids) / 2, "the room of jobs that are done is used again"
    assert one.call("drain") == again
    with Queue(disk / "store") as queue:
        assert_sound(queue.store)


def test_a_crash_on_a_full_disk_loses_nothing(disk: Path, start: Starter) -> None:
    one = start(sync="full")
    ids, error, _ = one.call("fill", 2000)
    assert error == "DiskFull"
    claimed = one.call("get", 10)["id"]
    one.kill()
    one.child.wait()
    two = start()
    assert two.call("recover") <= 1  # the start may have seen to it already
    assert two.call("state", claimed) == "pending"
    assert sorted(two.call("drain")) == ids


def test_a_store_that_cannot_even_be_made(disk: Path, start: Starter) -> None:
    filler = Filler(disk)
    filler.fill()
    one = start()
    with pytest.raises(DiskFull):
        one.call("put", "work")
    filler.remove()
    assert one.call("put", "work") == 1
    assert one.call("get", 10)["payload"] == "work"


def test_a_backup_that_fills_its_disk_leaves_the_store_alone(disk: Path, tmp_path: Path) -> None:
    with Queue[bytes](tmp_path / "store") as queue:
        queue.put(bytes(2 * SIZE))
        ballast = (tmp_path / "store" / "ballast").stat()
        with pytest.raises(DiskFull, match=r"no room for the copy at .*/copy: it was removed"):
            queue.store.backup(disk / "copy")
        assert not (disk / "copy").exists()
        assert (tmp_path / "store" / "ballast").stat() == ballast
        queue.put(b"more")
        queue.store.backup(tmp_path / "copy")


LIMIT = 2 * MIB


def test_map_size_refuses_puts_and_nothing_else(path: Path) -> None:
    with Queue(path, sync="off", map_size=LIMIT, vacuum_interval=0.001) as queue:
        ids = _fill(queue, 1000)
        assert LIMIT / 4 < len(ids) * 1000 <= LIMIT
        before = queue.stats()
        with pytest.raises(QueueFull):
            queue.put_many(["x" * 1000] * 100)
        with pytest.raises(QueueFull):
            _put_in_two_queues(queue)
        assert queue.stats() == before, "a refused operation leaves nothing behind"

        record = queue.get_nowait()
        record.nack("later")
        assert len(queue.jobs("pending", limit=1000)) == min(1000, len(ids))
        taken = [queue.get_nowait() for _ in ids]
        assert sorted(record.job_id for record in taken) == ids, "all of them claimed at once"
        for record in taken:
            record.ack()
        assert queue.qsize() == 0

        assert len(_fill(queue, 1000)) > len(ids) / 2
        assert_sound(queue.store)


def _put_in_two_queues(queue: Queue[Any]) -> None:
    with queue.store.transaction() as tx:
        tx.put(queue, "x" * 1000)
        tx.put(queue.store.queue("another"), "x" * 1000)


def _fill(queue: Queue[Any], size: int) -> list[int]:
    """Put until the limit, and not the disk, refuses it."""
    ids: list[int] = []
    with pytest.raises(QueueFull) as caught:
        ids.extend(queue.put("x" * size) for _ in range(100_000))
    assert caught.type is QueueFull
    return ids


def test_jobs_kept_after_they_are_done_do_not_keep_a_drained_queue_full(path: Path) -> None:
    with Queue(path, sync="off", map_size=LIMIT) as queue:
        for _ in _fill(queue, 1000):
            queue.get_nowait().ack()
        assert queue.qsize() == 0
        queue.purge("done")
        assert queue.put("room again")


def test_two_processes_respect_one_limit(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        queue.stats()
        one, two = (remote(map_size=LIMIT, vacuum_interval=0.001) for _ in range(2))
        for process in (one, two):
            process.send("fill", 1000)
        filled = [process.reply() for process in (one, two)]
        assert {error for _, error, _ in filled} == {"QueueFull"}
        ids = sorted(filled[0][0] + filled[1][0])
        assert len(ids) == len(set(ids)) == queue.stats()["pending"]
        for process in (one, two):
            process.send("drain")
        assert sorted(one.reply() + two.reply()) == ids
        assert one.call("put", "room again")
        assert_sound(queue.store)
