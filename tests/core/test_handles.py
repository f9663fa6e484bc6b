"""One process, many handles: they are one store, whatever the path is called."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue, QueueClosed, Store
from tests.contract.helpers import WATCHDOG, assert_counts, drain
from tests.core.children import run


def assert_one_store(one: Any, two: Any) -> None:
    """What either handle does, the other sees, in both directions."""
    first = one.put("from one")
    second = two.put("from two")
    assert second == first + 1
    records = two.get_nowait(), one.get_nowait()
    assert [record.payload for record in records] == ["from one", "from two"]
    for record in records:
        record.ack()
    assert one.stats() == two.stats()


@pytest.mark.contract("HND-01")
def test_a_queue_opened_twice(path: Path) -> None:
    with Queue(path) as one, Queue(path) as two:
        assert_one_store(one, two)


@pytest.mark.contract("HND-01")
def test_a_store_and_a_queue(path: Path) -> None:
    with Store(path) as store, Queue(path) as queue:
        assert_one_store(store.queue(), queue)


@pytest.mark.contract("HND-01")
def test_two_stores(path: Path) -> None:
    with Store(path) as one, Store(path) as two:
        assert_one_store(one.queue("q"), two.queue("q"))
        assert one.queues() == two.queues() == ["q"]


@pytest.mark.contract("HND-01")
def test_a_queue_made_from_a_store(path: Path) -> None:
    with Store(path) as store, Queue(store, "mail") as one, store.queue("mail") as two:
        assert one.store is store
        assert_one_store(one, two)


@pytest.mark.contract("HND-01")
def test_through_a_symlink(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    with Queue(path) as one:
        one.stats()
        link.symlink_to(path)
        with Queue(link) as two:
            assert_one_store(one, two)


@pytest.mark.contract("HND-01")
def test_through_a_symlink_first(path: Path, tmp_path: Path) -> None:
    path.mkdir()
    link = tmp_path / "link"
    link.symlink_to(path)
    with Queue(link) as one, Queue(path) as two:
        assert_one_store(one, two)


@pytest.mark.contract("HND-01")
def test_by_a_relative_path(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Queue("store") as one, Queue("./x/../store/") as two, Queue(path) as three:
        (tmp_path / "x").mkdir()
        assert_one_store(one, three)
        assert_one_store(two, three)


@pytest.mark.contract("HND-01")
def test_through_a_hard_link(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Queue(path) as one:
        one.stats()
        os.link(path / "data.mdb", other / "data.mdb")
        with Queue(other) as two:
            assert_one_store(one, two)


@pytest.mark.contract("HND-02")
def test_the_working_directory_may_change(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with Queue("store") as used, Queue("store") as unused:
        used.put("x")
        monkeypatch.chdir(elsewhere)
        used.put("y")
        assert drain(unused) == ["x", "y"]
        assert repr(str(path)) in repr(used.store)
        with Queue(path) as absolute:
            assert_one_store(used, absolute)
    assert not (elsewhere / "store").exists()


@pytest.mark.contract("HND-03")
def test_constructing_touches_no_disk(path: Path) -> None:
    store = Store(path)
    queue: Queue = Queue(path)
    store.queue("other")
    assert not path.exists()
    queue.close()
    store.close()
    assert not path.exists()


@pytest.mark.contract("HND-03")
def test_the_first_use_makes_the_store(path: Path) -> None:
    with Queue(path) as queue:
        assert queue.stats()["total"] == 0
        assert (path / "data.mdb").is_file()


@pytest.mark.contract("HND-03")
def test_an_existing_empty_directory_becomes_a_store(path: Path) -> None:
    path.mkdir()
    with Queue(path) as queue:
        queue.put("x")
        assert drain(queue) == ["x"]


@pytest.mark.contract("HND-03")
def test_missing_parents_are_made(path: Path) -> None:
    with Queue(path / "a" / "b") as queue:
        queue.put("x")
        assert drain(queue) == ["x"]


@pytest.mark.contract("HND-04")
def test_nobody_else_may_read_the_store(path: Path) -> None:
    before = os.umask(0)
    try:
        with Queue(path) as queue, Queue(path, "other") as other:
            queue.put("x")
            queue.get_nowait()
            other.put("y")
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
            for directory, _, names in os.walk(path):
                assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o700
                for name in names:
                    mode = (Path(directory) / name).stat().st_mode
                    assert stat.S_IMODE(mode) == 0o600, name
    finally:
        os.umask(before)


@pytest.mark.contract("HND-05")
def test_closing_is_idempotent(path: Path) -> None:
    store, queue = Store(path), Queue(path)
    queue.put("x")
    for handle in (store, queue, store, queue):
        handle.close()
    unused = Store(path)
    unused.close()
    unused.close()


@pytest.mark.contract("HND-05")
def test_closing_one_handle_leaves_the_other(path: Path) -> None:
    with Queue(path) as two:
        one: Queue = Queue(path)
        one.put("x")
        one.close()
        with pytest.raises(QueueClosed):
            one.put("y")
        two.put("z")
        assert drain(two) == ["x", "z"]


@pytest.mark.contract("HND-05")
def test_closing_a_queue_leaves_its_store(path: Path) -> None:
    with Store(path) as store:
        for _ in range(2):
            with store.queue() as queue:
                queue.put("x")
        assert store.stats()["default"]["pending"] == 2


@pytest.mark.contract("HND-05")
def test_closing_a_store_closes_its_queues(path: Path) -> None:
    store = Store(path)
    queue = store.queue()
    queue.put("x")
    store.close()
    with pytest.raises(QueueClosed):
        queue.put("y")


@pytest.mark.contract("HND-05")
def test_a_store_can_be_opened_again_after_closing(path: Path) -> None:
    for number in range(1, 6):
        with Queue(path) as queue:
            assert queue.put("x") == number


QUEUE_VERBS = {
    "put": lambda queue: queue.put("x"),
    "put_nowait": lambda queue: queue.put_nowait("x"),
    "put_many": lambda queue: queue.put_many(["x"]),
    "get": lambda queue: queue.get(),
    "get with timeout": lambda queue: queue.get(timeout=0),
    "get_many": lambda queue: queue.get_many(1),
    "get_nowait": lambda queue: queue.get_nowait(),
    "processing": lambda queue: queue.processing().__enter__(),
    "job": lambda queue: queue.job(1),
    "jobs": lambda queue: queue.jobs(),
    "cancel": lambda queue: queue.cancel(1),
    "requeue": lambda queue: queue.requeue(1),
    "requeue_failed": lambda queue: queue.requeue_failed(),
    "purge": lambda queue: queue.purge("done"),
    "pause": lambda queue: queue.pause(),
    "resume": lambda queue: queue.resume(),
    "paused": lambda queue: queue.paused,
    "join": lambda queue: queue.join(),
    "result": lambda queue: queue.result(1),
    "stats": lambda queue: queue.stats(),
    "qsize": lambda queue: queue.qsize(),
    "empty": lambda queue: queue.empty(),
    "recover": lambda queue: queue.recover(),
    "vacuum": lambda queue: queue.vacuum(),
}


@pytest.mark.contract("HND-06")
@pytest.mark.parametrize("verb", QUEUE_VERBS.values(), ids=QUEUE_VERBS)
@pytest.mark.parametrize("used", [True, False])
def test_a_closed_queue_says_so(path: Path, verb: Any, used: bool) -> None:
    queue: Queue = Queue(path)
    if used:
        queue.put("x")
    queue.close()
    with pytest.raises(QueueClosed) as caught:
        verb(queue)
    assert str(caught.value)


RECORD_VERBS = {
    "ack": lambda record: record.ack(),
    "nack": lambda record: record.nack(),
    "fail": lambda record: record.fail(),
    "release": lambda record: record.release(),
    "extend": lambda record: record.extend(5),
}


@pytest.mark.contract("HND-06")
@pytest.mark.parametrize("verb", RECORD_VERBS.values(), ids=RECORD_VERBS)
def test_a_record_of_a_closed_queue_says_so(path: Path, verb: Any) -> None:
    queue: Queue = Queue(path)
    queue.put("x")
    record = queue.get_nowait()
    queue.close()
    with pytest.raises(QueueClosed):
        verb(record)


STORE_VERBS = {
    "queues": lambda store, there: store.queues(),
    "stats": lambda store, there: store.stats(),
    "owners": lambda store, there: store.owners(),
    "check": lambda store, there: store.check(),
    "compact": lambda store, there: store.compact(),
    "configure": lambda store, there: store.configure(sync="off"),
    "backup": lambda store, there: store.backup(there),
}


@pytest.mark.contract("HND-06")
@pytest.mark.parametrize("verb", STORE_VERBS.values(), ids=STORE_VERBS)
def test_a_closed_store_says_so(path: Path, tmp_path: Path, verb: Any) -> None:
    store = Store(path)
    store.queue().put("x")
    store.close()
    with pytest.raises(QueueClosed):
        verb(store, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


@pytest.mark.contract("HND-06")
def test_a_closed_stores_transaction_is_refused(path: Path) -> None:
    store = Store(path)
    queue = store.queue()
    queue.put("x")
    store.close()
    with pytest.raises(QueueClosed):
        with store.transaction() as tx:
            tx.put(queue, "y")


BLOCKING = {
    "get": lambda queue: queue.get(),
    "get with timeout": lambda queue: queue.get(timeout=WATCHDOG),
    "get_many": lambda queue: queue.get_many(3),
    "processing": lambda queue: queue.processing().__enter__(),
    "join": lambda queue: queue.join(),
    "result": lambda queue: queue.result(1),
}


@pytest.mark.contract("HND-07")
@pytest.mark.parametrize("wait", BLOCKING.values(), ids=BLOCKING)
@pytest.mark.parametrize("close", ["queue", "store"])
def test_closing_wakes_a_waiting_thread(path: Path, wait: Any, close: str) -> None:
    store = Store(path, sync="off")
    queue = store.queue()
    queue.put("later", delay=3600)
    outcome: list[BaseException] = []
    started = threading.Event()

    def blocked() -> None:
        started.set()
        try:
            wait(queue)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    started.wait(WATCHDOG)
    thread.join(0.05)  # let it fall asleep; the outcome is the same if it doesn't
    (queue if close == "queue" else store).close()
    thread.join(WATCHDOG)
    assert not thread.is_alive()
    assert [type(error) for error in outcome] == [QueueClosed]
    store.close()


@pytest.mark.contract("HND-07")
def test_closing_wakes_all_waiting_threads(path: Path) -> None:
    queue: Queue = Queue(path, sync="off")
    outcome: list[BaseException] = []

    def blocked() -> None:
        try:
            queue.get()
        except BaseException as error:
            outcome.append(error)

    threads = [threading.Thread(target=blocked) for _ in range(8)]
    for thread in threads:
        thread.start()
    threads[-1].join(0.05)
    queue.close()
    for thread in threads:
        thread.join(WATCHDOG)
    assert [type(error) for error in outcome] == [QueueClosed] * 8


@pytest.mark.contract("HND-05", "HND-07")
def test_closing_one_handle_does_not_disturb_who_waits_on_another(path: Path) -> None:
    with Queue(path, sync="off") as two:
        one: Queue = Queue(path, sync="off")
        one.put("later", delay=3600)
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(two.get(timeout=WATCHDOG)))
        thread.start()
        thread.join(0.05)
        one.close()
        two.put("now")
        thread.join(WATCHDOG)
        assert [record.payload for record in got] == ["now"]


@pytest.mark.contract("HND-07")
def test_closing_amid_work_crashes_nothing(path: Path) -> None:
    run(
        """
        for round in range(20):
            queue = Queue(path, sync="off")
            errors = []
            def work():
                try:
                    while True:
                        queue.put("x")
                        queue.get(timeout=1).ack()
                        queue.stats()
                        queue.jobs()
                except QueueClosed:
                    pass
                except BaseException as error:
                    errors.append(error)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads: thread.start()
            time.sleep(0.02)
            queue.close()
            for thread in threads: thread.join()
            assert not errors, errors
        """,
        path,
    )
    with Store(path) as store:
        assert store.check().ok


@pytest.mark.contract("HND-08")
def test_closed_handles_leave_no_descriptor_behind(path: Path) -> None:
    def open_and_close() -> int:
        with Queue(path, sync="off") as queue, Queue(path, "other") as other:
            queue.put("x")
            queue.get_nowait().ack()
            other.put("y")
        return len(os.listdir("/dev/fd"))

    open_and_close()
    before = open_and_close()
    for _ in range(20):
        open_and_close()
    assert open_and_close() <= before


@pytest.mark.contract("HND-01")
def test_threads_share_one_handle(path: Path) -> None:
    with Queue(path, sync="off") as queue:
        seen: list[int] = []

        def work(number: int) -> None:
            for step in range(50):
                queue.put([number, step])
            for _ in range(50):
                with queue.processing(timeout=WATCHDOG) as record:
                    seen.append(record.job_id)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
        assert sorted(seen) == list(range(1, 401))
        assert_counts(queue, done=400)


@pytest.mark.contract("HND-01")
def test_handles_keep_their_own_options(path: Path) -> None:
    with Queue(path, max_retries=0) as strict, Queue(path, max_retries=5) as lenient:
        strict.put("x")
        lenient.get_nowait().nack()
        assert_counts(strict, pending=1)
        strict.get_nowait().nack()
        assert_counts(strict, failed=1)


@pytest.mark.contract("HND-09")
def test_a_store_lists_its_queues(path: Path) -> None:
    with Store(path) as store:
        assert store.queues() == []
        assert store.stats() == {}
        for name in ("b", "a", "c"):
            store.queue(name).put(name)
        assert sorted(store.queues()) == ["a", "b", "c"]
        assert set(store.stats()) == {"a", "b", "c"}
        assert store.stats()["a"] == store.queue("a").stats()
        assert Path(store.path) == path


@pytest.mark.contract("HND-09")
def test_a_queue_knows_its_name_and_path(path: Path) -> None:
    with Queue(path, "mail") as queue, Queue(path) as default:
        assert queue.name == "mail"
        assert default.name == "default"
        assert Path(queue.path) == Path(queue.store.path) == path
