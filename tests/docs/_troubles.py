"""Each error that docs/production/troubleshooting.md describes, provoked: what a user sees is what it says.

A trouble is a function of a directory that is not there yet. It gets itself into the trouble, and raises the
error or returns what is seen of it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import dramatiq
import lmdb
import msgpack
from dramatiq import Message

from equeue_core import JobCancelled, Queue, QueueEmpty, Record, Store
from equeue_core._store import _environment, _format, _keys, _mounts
from equeue_dramatiq import LMDBBroker
from equeue_rq import LMDBRedis
from tests.core.test_foreign import make_lmdb, make_lmdb_queue
from tests.crash._mounts import Filler, mounted

Trouble = Callable[[Path], "str | None"]

TROUBLES: dict[str, Trouble] = {}

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOBODY = 65534
SIZE = 8 << 20


def trouble(function: Trouble) -> Trouble:
    """Have it tried by the test."""
    TROUBLES[function.__name__] = function
    return function


def made(path: Path) -> Path:
    """A store with a job."""
    with Queue[str](path, "mail") as queue:
        queue.put("x")
    return path


@contextlib.contextmanager
def elsewhere(path: Path, script: str) -> Iterator[None]:
    """Another process runs the script (which has `queue`) and then waits."""
    program = f"""
        import sys
        from equeue_core import *
        queue = Queue({str(path)!r}, "mail")
        {script}
        print("ready", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """With another user's rights, in this process."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


# What cannot be a store


@trouble
def a_file(path: Path) -> None:
    path.write_text("precious", encoding="utf-8")
    made(path)


@trouble
def no_permission(path: Path) -> None:
    made(path)
    with as_nobody():
        made(path)


@trouble
def a_read_only_file_system(path: Path) -> None:
    with mounted("tmpfs", path, SIZE):
        made(path / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
        made(path / "data")


@trouble
def a_hard_link(path: Path) -> None:
    made(path.with_name("original"))
    path.mkdir()
    (path / "data.mdb").hardlink_to(path.with_name("original") / "data.mdb")
    made(path)


@trouble
def a_network_file_system(path: Path) -> None:
    with mock.patch.object(_mounts, "network_file_system", return_value="nfs4"):
        made(path)


@trouble
def a_newer_format(path: Path) -> None:
    made(path)
    rewrite_format(path, _format.FORMAT_NUMBER + 1)
    made(path)


def rewrite_format(path: Path, number: int) -> None:
    """Have the store say that it is of another format."""
    with lmdb_write(path) as txn:
        record = msgpack.unpackb(txn.get(_keys.FORMAT))
        txn.put(_keys.FORMAT, msgpack.packb({**record, "format": number}))


@trouble
def a_store_of_lmdb_queue(path: Path) -> None:
    make_lmdb_queue(path)
    made(path)


@trouble
def another_programs_database(path: Path) -> None:
    make_lmdb(path, {b"key": b"value"})
    made(path)


@trouble
def another_mode(path: Path) -> None:
    made(path)
    Queue[str](path, sync="off").put("x")


@trouble
def too_many_queues(path: Path) -> None:
    made(path)
    with lmdb_write(path) as txn:
        txn.put(_keys.NEXT_QUEUE, _keys.U16.pack(_keys.MAX_QUEUES))
    Queue[str](path, "one more").put("x")


@contextlib.contextmanager
def lmdb_write(path: Path) -> Iterator[Any]:
    """A transaction that the engine knows nothing of."""
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        yield txn


# Damage


@trouble
def an_emptied_file(path: Path) -> None:
    made(path)
    os.truncate(path / "data.mdb", 0)
    made(path)


@trouble
def a_file_cut_short(path: Path) -> None:
    with Queue[str](path) as queue:
        queue.put_many(["x" * 1000] * 100)
    os.truncate(path / "data.mdb", os.path.getsize(path / "data.mdb") // 2 // 4096 * 4096)
    made(path)


@trouble
def no_database(path: Path) -> None:
    made(path)
    (path / "data.mdb").write_bytes(b"something else")
    made(path)


@trouble
def an_overwritten_page(path: Path) -> None:
    made(path)
    size = os.path.getsize(path / "data.mdb")
    with (path / "data.mdb").open("r+b") as file:
        file.seek(2 * 4096)
        file.write(bytes(size - 2 * 4096))
    made(path)


@trouble
def a_damaged_header(path: Path) -> None:
    made(path)
    with (path / "data.mdb").open("r+b") as file:
        file.write(b"\xff" * 4096)
        file.write(b"\xff" * 4096)
    made(path)


@trouble
def a_damaged_format_record(path: Path) -> None:
    made(path)
    with lmdb_write(path) as txn:
        txn.put(_keys.FORMAT, b"?")
    made(path)


# In use


@trouble
def removed_while_in_use(path: Path) -> None:
    with Queue[str](path) as queue:
        queue.put("x")
        subprocess.run(["rm", "-r", str(path)], check=True)
        while True:
            queue.put("x")


@trouble
def busy(path: Path) -> None:
    made(path)
    with elsewhere(path, "queue.stats()"), Store(path) as store:
        store.compact()


@trouble
def kept_out(path: Path) -> None:
    made(path)
    alone = "alone = queue.store._environment.owners.exclusive_presence(); "
    with elsewhere(path, f"queue.stats(); {alone}alone.__enter__()"):
        made(path)


@trouble
def a_map_too_small(path: Path) -> None:
    with mock.patch.object(_environment, "_VIRTUAL_SIZE", 1 << 20), Queue[str](path) as queue:
        while True:
            queue.put("x" * 1000)


@trouble
def a_limit_reached(path: Path) -> None:
    with Queue[str](path, map_size=100_000) as queue:
        while True:
            queue.put("x" * 1000)


@trouble
def a_full_disk(path: Path) -> None:
    with mounted("tmpfs", path, SIZE), Queue[str](path / "data", sync="off") as queue:
        queue.put("x")
        Filler(path).fill()
        while True:
            queue.put("x" * 10_000)


@trouble
def a_limit_on_the_size_of_files(path: Path) -> None:
    with Queue[bytes](path, sync="off") as queue:
        queue.put(b"x")
        before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, most))
        try:
            queue.put(bytes(2 * SIZE))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@trouble
def a_backup_to_a_directory_with_files(path: Path) -> None:
    made(path)
    with Store(path) as store:
        store.backup(path)


@trouble
def a_lost_claim(path: Path) -> None:
    record: Record[str] = Queue[str](made(path), "mail").get(timeout=0)
    record.ack()
    record.ack()


@trouble
def a_closed_queue(path: Path) -> None:
    queue = Queue[str](path)
    queue.close()
    queue.put("x")


@trouble
def no_plain_data(path: Path) -> None:
    Queue[object](path).put({1, 2})


@trouble
def a_duplicate(path: Path) -> None:
    with Queue[str](path) as queue:
        queue.put("x", unique="nightly")
        queue.put("x", unique="nightly")


@trouble
def a_job_that_is_gone(path: Path) -> None:
    with Queue[str](path, keep_done=False) as queue:
        job_id = queue.put("x")
        queue.get(timeout=0).ack()
        queue.job(job_id)


# What is noted with a job


def note(queue: Queue[str], job_id: int) -> str:
    """The last error of a job."""
    return queue.job(job_id).errors[-1].message


@trouble
def a_killed_worker(path: Path) -> str:
    with Queue[str](path, "mail") as queue:
        job_id = queue.put("x")
        with elsewhere(path, "record = queue.get(timeout=5)"):
            pass
        queue.recover()
        return note(queue, job_id)


@trouble
def an_ended_lease(path: Path) -> str:
    with Queue[str](path, lease_time=0.01) as queue:
        job_id = queue.put("x")
        record = queue.get(timeout=0)
        again = queue.get(timeout=5)
        assert again.job_id == record.job_id
        return note(queue, job_id)


@trouble
def an_expired_job(path: Path) -> str:
    with Queue[str](path) as queue:
        job_id = queue.put("x", expires_in=0.001)
        with contextlib.suppress(JobCancelled):
            queue.result(job_id, timeout=5)
        return note(queue, job_id)


@trouble
def a_payload_of_another_codec(path: Path) -> str:
    with Queue[object](path, codec=Plain()) as queue:
        job_id = queue.put(b"\xc1")
    with Queue[str](path) as queue:
        with contextlib.suppress(QueueEmpty):
            queue.get(timeout=0)
        return note(queue, job_id)


class Plain:
    """A codec for bytes."""

    encode = staticmethod(bytes)
    decode = staticmethod(bytes)


# The command line


@trouble
def no_store(path: Path) -> str:
    return command("stats", path)


@trouble
def no_queue(path: Path) -> str:
    return command("jobs", made(path), "post")


@trouble
def no_adapter(path: Path) -> str:
    program = (
        "import sys; sys.modules['rq'] = None; from equeue_core.cli import main; sys.exit(main())"
    )
    return said("-c", program, "jobs", made(path), "rq:default")


@trouble
def no_number(path: Path) -> str:
    return command("show", made(path), "mail", "x")


@trouble
def an_older_format(path: Path) -> str:
    made(path)
    rewrite_format(path, 1)
    return command("stats", path)


@trouble
def no_room_for_a_backup(path: Path) -> None:
    with Queue[bytes](path) as queue, mounted("tmpfs", path.with_name("small"), 1 << 14) as small:
        queue.put(bytes(SIZE))
        queue.store.backup(small / "copy")


@trouble
def a_store_in_place_of_a_backup(path: Path) -> str:
    made(path)
    with elsewhere(path, "queue.stats()"):
        return command("restore", path, path.with_name("restored"))


@trouble
def restored_over_a_store(path: Path) -> str:
    made(path)
    return command("restore", made(path.with_name("copy")), path)


@trouble
def restored_while_in_use(path: Path) -> str:
    made(path)
    with elsewhere(path, "queue.stats()"):
        return command("restore", made(path.with_name("copy")), path, "--replace", "--yes")


@trouble
def restored_over_a_mount_point(path: Path) -> str:
    with mounted("tmpfs", path, SIZE):
        return command("restore", made(path.with_name("copy")), made(path), "--replace", "--yes")


def command(*words: object) -> str:
    """What a command says of its error, in one line."""
    return said("-m", "equeue_core", *words)


def said(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    return done.stderr.strip()


# The adapters


@trouble
def dramatiq_cannot_open(path: Path) -> None:
    path.write_text("", encoding="utf-8")
    LMDBBroker(path).enqueue(_message())


@trouble
def dramatiq_on_a_full_disk(path: Path) -> None:
    broker = LMDBBroker(path, map_size=100_000)
    broker.declare_queue("default")
    while True:
        broker.enqueue(_message())


def _message() -> dramatiq.Message[Any]:
    return Message("default", "send", ("x" * 1000,), {}, {})


@trouble
def rq_cannot_open(path: Path) -> None:
    path.write_text("", encoding="utf-8")
    LMDBRedis(path).ping()
    LMDBRedis(path).get("x")


@trouble
def rq_on_a_full_disk(path: Path) -> None:
    with mounted("tmpfs", path, SIZE), LMDBRedis(path / "data", sync="off") as client:
        client.ping()
        Filler(path).fill()
        while True:
            client.rpush("x", "x" * 10_000)


@trouble
def rq_with_a_servers_options(path: Path) -> None:
    LMDBRedis(path, host="localhost")


def seen(provoke: Trouble, path: Path) -> str:
    """What the user sees of it: the error's class and text, or what the trouble returns."""
    try:
        text = provoke(path)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    assert text is not None, f"{provoke.__name__}: nothing happened"
    return text
