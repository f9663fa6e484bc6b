"""Commands for a store as a whole."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgpack
import pytest

from equeue_core import Queue, Store
from equeue_core._store import _keys
from equeue_core._store._exchange import exchange
from equeue_core.cli._errors import Code
from tests.cli.conftest import Run

Shown = Callable[..., Any]

USER = """
import sys
from equeue_core import Queue
queue = Queue(sys.argv[1], "mail")
record = queue.get(timeout=0)
print(record.job_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def used(store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open, and a job in hand."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "4\n"
    with process:
        yield process
        process.kill()


def write_format(path: Path, **changed: object) -> None:
    """Change the format record of a store that nobody has open."""
    with lmdb.open(str(path), lock=False) as environment, environment.begin(write=True) as txn:
        record = msgpack.unpackb(txn.get(_keys.FORMAT))
        txn.put(_keys.FORMAT, msgpack.packb({**record, **changed}))


def test_backup_and_restore(store: Path, tmp_path: Path, equeue: Run, used: object) -> None:
    copy, new = tmp_path / "copy", tmp_path / "new"
    equeue("backup", store, copy)
    assert [each.name for each in copy.iterdir()] == ["data.mdb"]
    assert "not an empty directory" in equeue("backup", store, copy, code=Code.UNUSABLE).stderr
    equeue("restore", copy, new)
    with Store(new) as restored:
        assert restored.stats()["mail"]["total"] == 6
        assert restored.check().ok
    assert [each.name for each in copy.iterdir()] == ["data.mdb"], "the backup is as it was"


@pytest.mark.contract("CLI-07")
def test_restore_in_place(store: Path, tmp_path: Path, equeue: Run) -> None:
    copy = tmp_path / "copy"
    equeue("backup", store, copy)
    with Queue(store, "mail") as queue:
        queue.put("after the backup")
    assert "--replace" in equeue("restore", copy, store, code=Code.UNUSABLE).stderr
    equeue("restore", copy, store, "--replace", code=Code.REFUSED)
    output = equeue("restore", copy, store, "--replace", "--yes").stderr
    aside = Path(output.rpartition(" is at ")[2].strip().rstrip("."))
    totals = []
    for path in (store, aside):
        with Store(path) as opened:
            totals.append(opened.stats()["mail"]["total"])
    assert totals == [6, 7]


@pytest.mark.contract("CLI-07")
@pytest.mark.parametrize(
    ("step", "first"), [("equeue_core._restore.exchange", exchange), ("os.rename", None)]
)
def test_restore_that_is_interrupted_deletes_nothing_and_leaves_no_moment_without_a_store(
    store: Path,
    tmp_path: Path,
    equeue: Run,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    first: Callable[[str, str], bool] | None,
) -> None:
    equeue("backup", store, tmp_path / "copy")
    before = store.stat().st_ino

    def interrupted(one: str, other: str) -> None:
        if first is not None:
            first(one, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(step, interrupted)
    equeue("restore", tmp_path / "copy", store, "--replace", "--yes", code=Code.INTERRUPTED)
    monkeypatch.undo()
    equeue("check", store)
    (former,) = set(tmp_path.iterdir()) - {store, tmp_path / "copy"}
    assert former.stat().st_ino == before
    equeue("check", former)


@pytest.mark.contract("CLI-07")
def test_two_restores_within_a_second(
    store: Path, tmp_path: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    equeue("backup", store, tmp_path / "copy")
    monkeypatch.setattr("equeue_core._restore.time.strftime", lambda form: "now")
    for _ in range(3):
        equeue("restore", tmp_path / "copy", store, "--replace", "--yes")
    names = {f"{store.name}.before-now{number}" for number in ("", "-2", "-3")}
    assert {each.name for each in tmp_path.iterdir()} == {store.name, "copy", *names}


@pytest.mark.contract("CLI-07")
def test_restore_where_directories_cannot_be_exchanged(
    store: Path, tmp_path: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    equeue("backup", store, tmp_path / "copy")
    monkeypatch.setattr("equeue_core._restore.exchange", lambda one, other: False)
    equeue("restore", tmp_path / "copy", store, "--replace", "--yes")
    equeue("check", store)
    assert len(list(tmp_path.iterdir())) == 3


def test_restore_replaces_a_damaged_store(store: Path, tmp_path: Path, equeue: Run) -> None:
    copy = tmp_path / "copy"
    equeue("backup", store, copy)
    (store / "data.mdb").write_bytes(b"not an LMDB file" * 1000)
    equeue("stats", store, code=Code.UNUSABLE)
    equeue("restore", copy, store, "--replace", "--yes")
    equeue("check", store)


def test_restore_into_a_store_that_lost_its_data(store: Path, tmp_path: Path, equeue: Run) -> None:
    equeue("backup", store, tmp_path / "copy")
    (store / "data.mdb").unlink()
    assert "restore" in equeue("stats", store, code=Code.NOT_FOUND).stderr
    equeue("restore", tmp_path / "copy", store, "--replace", "--yes")
    equeue("check", store)


@pytest.mark.contract("CLI-07")
def test_a_store_in_use_is_neither_replaced_nor_a_backup(
    store: Path, tmp_path: Path, equeue: Run, used: object
) -> None:
    copy = tmp_path / "copy"
    equeue("backup", store, copy)
    equeue("restore", copy, store, "--replace", "--yes", code=Code.BUSY)
    assert "equeue backup" in equeue("restore", store, tmp_path / "new", code=Code.BUSY).stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "data"]
    equeue("check", store)


def test_restore_through_a_link_and_into_an_empty_directory(
    store: Path, tmp_path: Path, equeue: Run
) -> None:
    copy, link, empty = tmp_path / "copy", tmp_path / "link", tmp_path / "empty"
    equeue("backup", store, copy)
    link.symlink_to(store)
    equeue("restore", copy, link, "--replace", "--yes")
    assert link.is_symlink()
    empty.mkdir(mode=0o750)
    equeue("restore", copy, empty)
    assert [each.name for each in empty.iterdir()] == ["data.mdb"]
    for path in (link, empty):
        equeue("check", path)


def test_restore_keeps_owner_and_mode(
    store: Path, tmp_path: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        os, "chown", lambda path, user, group: given.append((Path(path).name, user))
    )
    equeue("backup", store, tmp_path / "copy")
    store.chmod(0o750)
    equeue("restore", tmp_path / "copy", store, "--replace", "--yes")
    assert store.stat().st_mode & 0o777 == 0o750
    assert given[-1] == ("data.mdb", store.stat().st_uid)


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_cannot_be_renamed_stays(
    store: Path, tmp_path: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    equeue("backup", store, tmp_path / "copy")

    def refuse(source: str, target: str) -> bool:
        if can_exchange or str(source) == str(store):
            raise OSError(errno.EBUSY, "Device or resource busy")
        return False

    monkeypatch.setattr("equeue_core._restore.exchange", refuse)
    monkeypatch.setattr(os, "rename", refuse)
    output = equeue("restore", tmp_path / "copy", store, "--replace", "-y", code=Code.UNUSABLE)
    assert "mount point" in output.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "data"]
    equeue("check", store)


def test_what_cannot_be_restored(store: Path, tmp_path: Path, equeue: Run) -> None:
    equeue("restore", tmp_path / "none", tmp_path / "new", code=Code.NOT_FOUND)
    equeue("restore", store, store, "--replace", "--yes", code=Code.UNUSABLE)
    (tmp_path / "file").write_text("")
    equeue("restore", store, tmp_path / "file" / "data", code=Code.UNUSABLE)
    assert Store(store).check().ok


def test_check(store: Path, equeue: Run, shown: Shown) -> None:
    assert shown("check", store) == {"ok": True, "queues": 1, "jobs": 6, "problems": []}
    assert "nothing wrong" in equeue("check", store).stdout


def test_check_finds_problems(store: Path, equeue: Run, shown: Shown) -> None:
    prefix = _keys.U16.pack(_keys.FIRST_QUEUE)
    with lmdb.open(str(store), lock=False) as environment, environment.begin(write=True) as txn:
        with txn.cursor() as cursor:
            assert cursor.set_range(prefix + _keys.FAILED)
            txn.delete(cursor.key())
    report = shown("check", store, code=Code.PROBLEMS)
    assert not report["ok"]
    assert any("counter of failed jobs" in problem for problem in report["problems"])
    assert "restore" in equeue("check", store, code=Code.PROBLEMS).stderr


def test_compact(store: Path, equeue: Run, shown: Shown) -> None:
    with Queue(store, "big") as queue:
        queue.put_many(["x" * 10_000] * 200)
        queue.purge("pending")
    sizes = shown("compact", store)
    assert sizes["after"] < sizes["before"] / 10
    assert " before, " in equeue("compact", store).stdout


def test_compact_needs_the_store_for_itself(store: Path, equeue: Run, used: object) -> None:
    assert "another process" in equeue("compact", store, code=Code.BUSY).stderr


@pytest.mark.parametrize("command", ["stats", "check", "compact"])
def test_a_store_of_a_newer_format(command: str, store: Path, equeue: Run) -> None:
    write_format(store, format=99)
    before = sorted(each.name for each in store.iterdir())
    assert "upgrade equeue" in equeue(command, store, code=Code.UNUSABLE).stderr
    assert sorted(each.name for each in store.iterdir()) == before
    assert "upgrade equeue" in equeue("doctor", store, code=Code.PROBLEMS).stdout


@pytest.mark.contract("CLI-01")
def test_a_store_of_an_older_format_is_upgraded_by_compact_alone(store: Path, equeue: Run) -> None:
    write_format(store, format=1)
    assert "equeue compact" in equeue("stats", store, code=Code.UNUSABLE).stderr
    assert "equeue compact" in equeue("doctor", store, code=Code.PROBLEMS).stdout
    equeue("compact", store)
    equeue("check", store)


@pytest.mark.contract("CLI-05")
def test_another_programs_database_is_left_alone(tmp_path: Path, equeue: Run) -> None:
    foreign = tmp_path / "foreign"
    with lmdb.open(str(foreign), lock=False) as environment, environment.begin(write=True) as txn:
        txn.put(b"key", b"value")
    for command in ("stats", "check", "compact"):
        assert "another program" in equeue(command, foreign, code=Code.UNUSABLE).stderr
    equeue("backup", foreign, tmp_path / "copy", code=Code.UNUSABLE)
    assert [each.name for each in foreign.iterdir()] == ["data.mdb"]


def test_a_store_that_was_cut_short(store: Path, equeue: Run) -> None:
    data = store / "data.mdb"
    os.truncate(data, data.stat().st_size // 2)
    assert "cut short" in equeue("stats", store, code=Code.UNUSABLE).stderr
    assert "cut short" in equeue("doctor", store, code=Code.PROBLEMS).stdout


def test_a_backup_can_be_looked_at(store: Path, tmp_path: Path, shown: Shown) -> None:
    shutil.copytree(store, tmp_path / "whole")
    Store(store).backup(tmp_path / "copy")
    assert shown("check", tmp_path / "copy")["jobs"] == 6
