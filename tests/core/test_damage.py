"""A damaged data.mdb: an error that says what to do; no crash, no hang, no jobs lost in silence.

Each damaged copy is used in a process of its own, since what is feared is a signal.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from equeue_core import Queue, QueueCorrupted, Store
from equeue_core._store import _pages
from tests.core.children import PRELUDE, child, run

PAGE = 4096
PENDING, DONE, FAILED = 60, 10, 5

USE = """
def outcome(operation):
    try:
        return operation()
    except EQueueError as error:
        return f"{type(error).__name__}: {error}"

def use(path):
    said = {}
    with Queue(path) as queue:
        said["stats"] = outcome(queue.stats)
        said["jobs"] = outcome(lambda: len(queue.jobs(limit=1000)))
        said["job"] = outcome(lambda: queue.job(1).job_id)
        said["check"] = outcome(lambda: [list(queue.store.check().problems)])
        said["recover"] = outcome(queue.recover)
        taken = []
        def take():
            while True:
                try:
                    record = queue.get(timeout=0)
                except QueueEmpty:
                    return len(taken)
                taken.append(record)
                record.ack()
        said["take"] = outcome(take)
        said["taken"] = len(taken)
        said["put"] = outcome(lambda: queue.put("new"))
        said["vacuum"] = outcome(queue.vacuum)
        said["purge"] = outcome(lambda: queue.purge("failed"))
        said["after"] = outcome(queue.stats)
    return said
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with jobs in several states, on a handful of pages."""
    path = tmp_path_factory.mktemp("sound") / "store"
    with Queue(path, sync="off") as queue:
        queue.put_many([f"to be done {n}" for n in range(DONE)])
        queue.ack_many(queue.get_many(DONE, timeout=0))
        queue.put_many([f"to fail {n}" for n in range(FAILED)])
        for record in queue.get_many(FAILED, timeout=0):
            record.fail("broken")
        queue.put("x" * 10_000)
        queue.put_many([f"payload {n} " + "." * 150 for n in range(PENDING - 1)])
        assert queue.store.check().ok
    return path


@pytest.fixture
def damaged(sound: Path, path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(sound, path, ignore=lambda d, names: [n for n in names if n.startswith("bell")])
    return path


def assert_honest(said: dict[str, object]) -> None:
    """Each answer is an error that names the damage, or is right."""
    for name, answer in said.items():
        if isinstance(answer, str):
            assert answer.startswith("QueueCorrupted"), (name, answer)
            assert "backup" in answer or name == "check", answer
    if isinstance(said["stats"], dict):
        assert said["stats"] == {
            "pending": PENDING,
            "scheduled": 0,
            "running": 0,
            "done": DONE,
            "failed": FAILED,
            "cancelled": 0,
            "total": PENDING + DONE + FAILED,
        }
    if isinstance(said["take"], int) and said["take"] < PENDING:
        # Payloads that were overwritten can't be told from other bytes; such jobs are FAILED.
        assert said["check"] != [[]] or said["after"]["failed"] > 0, said  # type: ignore[index]
    if isinstance(said["jobs"], int):
        assert said["jobs"] == PENDING + DONE + FAILED


@pytest.mark.contract("DMG-01")
@pytest.mark.parametrize(
    "size", [0, 1, 100, PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE, 3 * PAGE, -5 * PAGE, -PAGE, -1]
)
def test_a_file_cut_short(damaged: Path, size: int) -> None:
    data = damaged / "data.mdb"
    whole = data.stat().st_size
    size = size if size >= 0 else whole + size
    with data.open("r+b") as file:
        file.truncate(size)
    said = json.loads(run(USE + "say(json.dumps(use(path)))", damaged))
    assert_honest(said)
    if size < whole // 2:
        assert str(said["stats"]).startswith("QueueCorrupted"), said
        assert data.stat().st_size == size, "the evidence was changed"


@pytest.mark.contract("DMG-01")
def test_a_file_that_is_gone(damaged: Path) -> None:
    (damaged / "data.mdb").unlink()
    with pytest.raises(QueueCorrupted, match="backup"):
        Queue(damaged).stats()


@pytest.mark.contract("DMG-02")
def test_each_page_zeroed_in_turn(sound: Path, tmp_path: Path) -> None:
    """One child a page would be slow: each damage runs in a fork of one child."""
    whole = (sound / "data.mdb").read_bytes()
    pages = len(whole) // PAGE
    assert pages >= 6
    script = (
        USE
        + """
import shutil, faulthandler
sound, pages = sys.argv[2], int(sys.argv[3])
for page in range(pages):
    copy = os.path.join(path, f"page-{page}")
    shutil.copytree(sound, copy, ignore=lambda d, names: [n for n in names if n.startswith("bell")])
    with open(os.path.join(copy, "data.mdb"), "r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(4096))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(50)
        try:
            os.write(writer, json.dumps(use(copy)).encode())
        except BaseException as error:
            os.write(writer, json.dumps({"crash": repr(error)}).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        said = answer.read().decode()
    status = os.waitpid(pid, 0)[1]
    say(json.dumps([page, status, said]))
    shutil.rmtree(copy)
"""
    )
    assert PRELUDE
    wrong = []
    with child(script, tmp_path, sound, pages) as worker:
        for expected in range(pages):
            page, status, said = json.loads(worker.hear())
            assert page == expected
            if status != 0:
                wrong.append(f"page {page}: ended by status {status}")
                continue
            try:
                assert_honest(json.loads(said))
            except (AssertionError, KeyError) as error:
                wrong.append(f"page {page}: {said}: {error}")
        assert worker.wait() == 0
    assert not wrong, "\n".join(wrong)


def leaf_of(path: Path) -> int:
    """A page that holds pending jobs, and nothing that is read when a store is opened."""
    data = (path / "data.mdb").read_bytes()
    last = b"payload %d " % (PENDING - 2)
    pages = [
        page
        for page in range(2, len(data) // PAGE)
        # Kind 2 is a leaf. Bytes of former use may lie in any page, hence the other two conditions.
        if data[page * PAGE + 10] == 2
        and last in _page(data, page)
        and b"created" not in _page(data, page)
    ]
    return next(page for page in pages if _is_in_use(data, page))


def _page(data: bytes, page: int) -> bytes:
    return data[page * PAGE : (page + 1) * PAGE]


def _is_in_use(data: bytes, page: int) -> bool:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(page * PAGE)
        file.write(bytes(PAGE))
        file.flush()
        return _pages.overwritten_page(file.fileno(), None) == page


@pytest.mark.contract("DMG-02")
def test_many_pages_are_looked_at_once_after_each_boot(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = leaf_of(damaged)
    with (damaged / "data.mdb").open("r+b") as file:
        file.seek(page * PAGE)
        file.write(bytes(PAGE))
    with pytest.raises(QueueCorrupted, match=f"page {page} "):
        Queue(damaged).stats()
    monkeypatch.setattr("equeue_core._store._pages.FEW", 0)
    with Store(damaged) as store:
        assert store.sync == "off", "a store with this many pages is not looked through again"
    monkeypatch.setattr("equeue_core._store._pages.boot", lambda: b"another boot")
    with pytest.raises(QueueCorrupted, match=f"page {page} "):
        Queue(damaged).stats()


@pytest.mark.contract("DMG-02")
def test_a_sound_store_is_found_sound(
    sound: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sound, path, ignore=lambda d, names: [n for n in names if n.startswith("bell")])
    monkeypatch.setattr("equeue_core._store._pages.boot", lambda: b"another boot")
    for _ in range(2):
        with Queue(path) as queue:
            assert queue.stats()["pending"] == PENDING
    with Queue(path) as queue:
        queue.put_many(["x" * 3000] * 3000)
        queue.put_many(["x" * 30_000] * 100)
        queue.ack_many(queue.get_many(1000, timeout=0))
        queue.purge("done")
    monkeypatch.setattr("equeue_core._store._pages.boot", lambda: b"a third boot")
    with Store(path) as store:
        assert store.check().ok


@pytest.mark.contract("DMG-02")
@pytest.mark.parametrize("page", [0, 1])
def test_a_zeroed_meta_page_is_not_an_older_state(damaged: Path, page: int) -> None:
    """The other meta page describes the store as it was one commit ago; that is no answer."""
    with (damaged / "data.mdb").open("r+b") as file:
        file.seek(page * PAGE)
        file.write(bytes(PAGE))
    said = json.loads(run(USE + "say(json.dumps(use(path)))", damaged))
    assert_honest(said)


@pytest.mark.contract("DMG-03")
def test_damage_to_the_index_is_found_by_check(path: Path) -> None:
    import lmdb

    with Queue(path, sync="off") as queue:
        queue.put_many(range(10))
        queue.put("u", unique="k")
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        victims = [key for key, value in txn.cursor() if value.endswith(b"\x05")]
        assert victims
        for key in victims:
            txn.delete(key)
    with Store(path) as store:
        report = store.check()
        assert not report.ok
        assert report.problems


@pytest.mark.contract("DMG-03")
@pytest.mark.parametrize("kind", [b"f", b"g"])
def test_damage_to_the_list_of_failures_is_found_by_check(path: Path, kind: bytes) -> None:
    import lmdb

    with Queue(path, sync="off") as queue:
        queue.put("x")
        queue.get_nowait().fail()
    with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
        (victim,) = [key for key, _ in txn.cursor() if key[1:3] == b"\0" + kind and key[0] == 1]
        value = txn.pop(victim)
        if kind == b"g":
            txn.put(victim[:-1] + b"\x07", value)
    with Store(path) as store:
        problems = store.check().problems
    assert any("failure" in problem for problem in problems)
    assert len(problems) == 2


@pytest.mark.contract("DMG-04")
@pytest.mark.parametrize("name", ["lock", "owners", "bell", "ballast"])
def test_the_other_files_can_be_lost(damaged: Path, name: str) -> None:
    """Only data.mdb holds jobs. The rest is made anew when nobody has the store open."""
    victim = damaged / name
    if victim.is_dir():
        shutil.rmtree(victim)
    elif victim.exists():
        victim.unlink()
    with Queue(damaged) as queue:
        assert queue.stats()["pending"] == PENDING
        queue.get_nowait().ack()
        queue.put("new")
    with Store(damaged) as store:
        assert store.check().ok
