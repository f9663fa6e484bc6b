"""Directories that hold something else: recognised, named, and left as they were."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import lmdb
import msgpack
import pytest

from equeue_core import (
    EQueueError,
    ForeignStoreError,
    Queue,
    QueueCorrupted,
    Store,
    StoreVersionError,
)
from equeue_core._store import _format, _keys
from tests.contract.helpers import assert_counts, put_done, put_failed


def contents(path: Path) -> dict[bytes, bytes]:
    with lmdb.open(str(path), lock=False, readonly=True) as env, env.begin() as txn:
        return {bytes(key): bytes(value) for key, value in txn.cursor()}


def make_lmdb(path: Path, rows: dict[bytes, bytes], **options: Any) -> None:
    path.mkdir()
    with lmdb.open(str(path), lock=False, **options) as env, env.begin(write=True) as txn:
        for key, value in rows.items():
            txn.put(key, value)


def make_lmdb_queue(path: Path) -> None:
    """What lmdb-queue 0.1.1 leaves on disk after three puts and an ack."""
    u64 = struct.Struct(">Q")
    rows = {b"meta/tail": u64.pack(3), b"meta/stats": struct.pack("<5Q", 2, 0, 1, 0, 3)}
    for number in range(3):
        key = u64.pack(number)
        rows[b"job/" + key] = struct.pack("<d", 1e9) + msgpack.packb("x")
        rows[b"state/" + key] = b"D" if number == 0 else b"P"
        if number:
            rows[b"queued/" + key] = b""
    make_lmdb(path, rows, writemap=True, map_async=True, metasync=False, map_size=2**24)


@pytest.mark.contract("FOR-01")
def test_a_store_of_lmdb_queue_is_named(path: Path) -> None:
    make_lmdb_queue(path)
    before = contents(path)
    with pytest.raises(ForeignStoreError, match="lmdb-queue") as caught:
        Queue(path).put("x")
    assert str(path) in str(caught.value)
    assert contents(path) == before


@pytest.mark.contract("FOR-01")
def test_a_store_that_lmdb_queue_made_is_named(path: Path) -> None:
    theirs = pytest.importorskip("equeue", reason="lmdb-queue is not installed")
    if not hasattr(theirs, "__version__") or not hasattr(theirs, "queue"):
        pytest.skip("this equeue is not lmdb-queue")
    with theirs.Queue(str(path)) as queue:
        queue.put("x")
    with pytest.raises(ForeignStoreError, match="lmdb-queue"):
        Queue(path).put("x")


@pytest.mark.contract("FOR-01")
@pytest.mark.parametrize("operation", ["put", "get_nowait", "stats", "jobs", "recover", "vacuum"])
def test_whatever_is_asked_first(path: Path, operation: str) -> None:
    make_lmdb_queue(path)
    arguments = ("x",) if operation == "put" else ()
    queue: Queue = Queue(path)
    for _ in range(2):
        with pytest.raises(ForeignStoreError):
            getattr(queue, operation)(*arguments)
    queue.close()


@pytest.mark.contract("FOR-01")
@pytest.mark.parametrize("operation", ["check", "queues", "stats", "owners", "compact"])
def test_a_store_handle_says_so_too(path: Path, operation: str) -> None:
    make_lmdb_queue(path)
    before = contents(path)
    with pytest.raises(ForeignStoreError):
        getattr(Store(path), operation)()
    assert contents(path) == before


@pytest.mark.contract("FOR-02")
def test_another_programs_database_is_refused(path: Path) -> None:
    rows = {b"user:1": b"precious", b"\x00\x01": b"short", b"\xff" * 400: b"long"}
    make_lmdb(path, rows)
    with pytest.raises(ForeignStoreError, match="LMDB"):
        Queue(path).put("x")
    assert contents(path) == rows


@pytest.mark.contract("FOR-02")
def test_another_programs_named_databases_are_refused(path: Path) -> None:
    path.mkdir()
    with lmdb.open(str(path), lock=False, max_dbs=2) as env:
        env.open_db(b"users")
    with pytest.raises(ForeignStoreError):
        Queue(path).put("x")


@pytest.mark.contract("FOR-02")
def test_an_empty_lmdb_database_may_become_a_store(path: Path) -> None:
    make_lmdb(path, {})
    with Queue(path) as queue:
        queue.put("x")
        assert queue.get_nowait().payload == "x"


@pytest.mark.contract("FOR-03")
@pytest.mark.parametrize(
    "content", [b"not a database", b"x" * 4096, b"SQLite format 3\0" + b"\0" * 8176, b"\0" * 16384]
)
def test_a_file_that_is_no_lmdb_database_is_refused(path: Path, content: bytes) -> None:
    path.mkdir()
    (path / "data.mdb").write_bytes(content)
    with pytest.raises((ForeignStoreError, QueueCorrupted)) as caught:
        Queue(path).put("x")
    assert str(path) in str(caught.value)
    assert (path / "data.mdb").read_bytes() == content


@pytest.mark.contract("FOR-04")
def test_a_store_of_a_newer_format_is_refused(path: Path) -> None:
    with Queue(path) as queue:
        queue.put("x")
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        record = msgpack.unpackb(txn.get(_keys.FORMAT))
        record["format"] += 1
        txn.put(_keys.FORMAT, msgpack.packb(record))
    before = contents(path)
    for attempt in (lambda: Queue(path).put("y"), lambda: Store(path).check()):
        with pytest.raises(StoreVersionError, match="upgrade") as caught:
            attempt()
        assert str(record["format"]) in str(caught.value)
    assert contents(path) == before


@pytest.mark.contract("FOR-04")
def test_a_format_record_with_more_fields_is_kept(path: Path) -> None:
    with Queue(path) as queue:
        queue.put("x")
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        record = msgpack.unpackb(txn.get(_keys.FORMAT))
        txn.put(_keys.FORMAT, msgpack.packb(record | {"from a later release": 1}))
    with Queue(path) as queue:
        assert queue.get_nowait().payload == "x"
    assert b"from a later release" in contents(path)[_keys.FORMAT]


@pytest.mark.contract("FOR-05")
def test_a_store_of_the_first_format_is_brought_up_to_date(path: Path) -> None:
    with Queue(path, sync="normal") as queue, queue.store.queue("other") as other:
        for number in range(5):
            put_failed(queue, number)
        put_failed(other)
        put_done(queue)
        queue.put("x")
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        listed = [key for key, _ in txn.cursor() if key[0:1] and key[2:3] == _keys.FAILED_AT]
        assert len(listed) == 6
        for key in listed:
            txn.delete(key)
        record = msgpack.unpackb(txn.get(_keys.FORMAT))
        txn.put(_keys.FORMAT, msgpack.packb(record | {"format": 1, "from another release": 1}))
    with Store(path) as store:
        assert store.check().ok
        assert store.sync == "normal"
        assert_counts(store.queue(), failed=5, done=1, pending=1)
        with store.queue(keep_failed=0) as queue:
            assert queue.vacuum() == 5
        assert_counts(store.queue("other"), failed=1)
        assert store.check().ok
    record = msgpack.unpackb(contents(path)[_keys.FORMAT])
    assert record["format"] == _format.FORMAT_NUMBER
    assert record["from another release"] == 1


@pytest.mark.contract("FOR-03")
@pytest.mark.parametrize("record", [b"", b"\xc1", msgpack.packb([1]), msgpack.packb({"a": 1})])
def test_a_format_record_that_makes_no_sense_is_damage(path: Path, record: bytes) -> None:
    with Queue(path) as queue:
        queue.put("x")
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        txn.put(_keys.FORMAT, record)
    with pytest.raises(EQueueError):
        Queue(path).put("y")


@pytest.mark.contract("FOR-02")
def test_other_files_in_the_directory_are_left_alone(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("precious")
    with Queue(path) as queue:
        queue.put("x")
        assert_counts(queue, pending=1)
    assert (path / "notes.txt").read_text() == "precious"
