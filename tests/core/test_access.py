"""Paths that cannot be a store: refused by name, and left as they were."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core import (
    NetworkFileSystemError,
    Queue,
    Store,
    StoreAccessError,
    StoreError,
)
from tests.core.children import run

NOBODY = 65534

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)

AS_NOBODY = """
import pkgutil, importlib, equeue_core
for module in pkgutil.walk_packages(equeue_core.__path__, "equeue_core."):
    if not module.name.endswith("__main__") and ".cli" not in module.name:
        importlib.import_module(module.name)
Queue(path + "-warm").put("everything that is needed is imported now")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""

REFUSED = """
try:
    with Queue(path) as queue:
        queue.put("x")
        say("no error", queue.stats())
except StoreAccessError as error:
    assert isinstance(error, OSError)
    say("refused:", str(error))
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that another user can reach, which pytest's own are not."""
    directory = Path(tempfile.mkdtemp(prefix="equeue-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.contract("ACC-01")
def test_a_file_is_no_store(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(StoreAccessError, match="directory") as caught:
        Queue(path).put("x")
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, StoreError)
    assert path.read_text() == "precious"


@pytest.mark.contract("ACC-01")
def test_a_path_through_a_file_is_no_store(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(StoreAccessError):
        Queue(path / "below").put("x")
    assert path.read_text() == "precious"


@pytest.mark.contract("ACC-01")
@pytest.mark.parametrize("name", ["data.mdb", "lock"])
def test_a_directory_in_place_of_a_file(path: Path, name: str) -> None:
    (path / name).mkdir(parents=True)
    with pytest.raises(StoreError):
        Queue(path).put("x")


@pytest.mark.contract("ACC-01")
def test_a_dangling_link_is_no_store_or_makes_its_target(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "target")
    try:
        Queue(path).put("x")
    except StoreAccessError:
        assert not (tmp_path / "target").exists()
    else:
        assert (tmp_path / "target" / "data.mdb").exists()


@pytest.mark.contract("ACC-02")
@needs_root
def test_a_read_only_directory(shared: Path) -> None:
    store = shared / "store"
    store.mkdir()
    os.chown(store, NOBODY, NOBODY)
    store.chmod(0o555)
    said = run(AS_NOBODY + REFUSED, store)
    assert said.startswith("refused:")
    assert str(store) in said
    assert list(store.iterdir()) == []


@pytest.mark.contract("ACC-02")
@pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_directory_made_read_only(path: Path) -> None:
    path.mkdir(mode=0o555)
    with pytest.raises(StoreAccessError):
        Queue(path).put("x")


@pytest.mark.contract("ACC-02")
@needs_root
def test_a_parent_where_nothing_may_be_made(shared: Path) -> None:
    said = run(AS_NOBODY + REFUSED, shared / "store")
    assert said.startswith("refused:")
    assert str(shared) in said


@pytest.mark.contract("ACC-03")
@needs_root
def test_another_users_store(shared: Path) -> None:
    store = shared / "store"
    with Queue(store) as queue:
        queue.put("mine")
    said = run(AS_NOBODY + REFUSED, store)
    assert said.startswith("refused:")
    assert str(NOBODY) in said, "the message says who was refused"
    with Queue(store) as queue:
        assert queue.get_nowait().payload == "mine"


@pytest.mark.contract("ACC-03")
@needs_root
def test_a_store_whose_files_may_only_be_read(shared: Path) -> None:
    store = shared / "store"
    with Queue(store) as queue:
        queue.put("mine")
    for directory, _, names in os.walk(store):
        Path(directory).chmod(0o755)
        for name in names:
            (Path(directory) / name).chmod(0o644)
    assert run(AS_NOBODY + REFUSED, store).startswith("refused:")
    with Queue(store) as queue:
        assert queue.stats()["pending"] == 1


@pytest.mark.contract("ACC-03")
@needs_root
def test_one_command_run_as_root_does_not_lock_the_owner_out(shared: Path) -> None:
    store = shared / "store"
    store.mkdir(mode=0o700)
    os.chown(store, NOBODY, NOBODY)
    with Queue(store) as queue:
        queue.put("put by root")
        queue.get_nowait().release()
    assert run(AS_NOBODY + "say(Queue(path).get(timeout=60).payload)", store) == "put by root"


def mount_table(tmp_path: Path, *mounts: tuple[str, str]) -> str:
    """A mount table in which each path has a file system of the given type."""
    lines = ["21 1 8:1 / / rw,relatime - ext4 /dev/root rw"]
    for number, (point, kind) in enumerate(mounts, start=22):
        lines.append(f"{number} 21 0:{number} / {point} rw shared:1 - {kind} host:/export rw")
    table = tmp_path / "mountinfo"
    table.write_text("\n".join(lines) + "\n")
    return str(table)


@pytest.mark.contract("ACC-04")
@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs"])
def test_a_network_file_system_is_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(
        "equeue_core._store._mounts.MOUNT_TABLE", mount_table(tmp_path, (str(tmp_path), kind))
    )
    with pytest.raises(NetworkFileSystemError, match="allow_network_fs") as caught:
        Queue(path).put("x")
    assert kind in str(caught.value)
    assert isinstance(caught.value, StoreError)
    assert not (path / "data.mdb").exists()
    with Store(path, allow_network_fs=True) as store:
        store.queue().put("x")
    with Queue(path, allow_network_fs=True) as queue:
        assert queue.get_nowait().payload == "x"


@pytest.mark.contract("ACC-04")
def test_a_local_file_system_below_a_network_one_is_accepted(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mount_table(tmp_path, (str(tmp_path.parent), "nfs"), (str(tmp_path), "ext4"))
    monkeypatch.setattr("equeue_core._store._mounts.MOUNT_TABLE", table)
    with Queue(path) as queue:
        queue.put("x")


@pytest.mark.contract("ACC-04")
def test_a_network_file_system_beside_is_no_matter(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mount_table(tmp_path, (str(path)[:-1], "nfs"), (str(path) + "2", "nfs"))
    monkeypatch.setattr("equeue_core._store._mounts.MOUNT_TABLE", table)
    with Queue(path) as queue:
        queue.put("x")


@pytest.mark.contract("ACC-04")
def test_a_mount_point_with_a_blank_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = tmp_path / "net work"
    point.mkdir()
    escaped = str(point).replace(" ", "\\040")
    monkeypatch.setattr(
        "equeue_core._store._mounts.MOUNT_TABLE", mount_table(tmp_path, (escaped, "nfs4"))
    )
    with pytest.raises(NetworkFileSystemError):
        Queue(point / "store").put("x")


@pytest.mark.contract("ACC-04")
def test_without_a_mount_table_nothing_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equeue_core._store._mounts.MOUNT_TABLE", "/nonexistent/mountinfo")
    with Queue(path) as queue:
        queue.put("x")


@pytest.mark.contract("ACC-05")
def test_a_hard_link_alone_is_refused(path: Path, tmp_path: Path) -> None:
    with Queue(path) as queue:
        queue.put("x")
    other = tmp_path / "other"
    other.mkdir()
    os.link(path / "data.mdb", other / "data.mdb")
    with pytest.raises(StoreAccessError, match="link"):
        Queue(other).put("y")
    with Queue(path) as queue:
        assert queue.stats()["total"] == 1
