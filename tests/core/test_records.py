"""Records that nobody completes."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue, QueueEmpty, Store
from tests.contract.helpers import WATCHDOG, assert_counts, drain
from tests.core.children import run


@pytest.mark.contract("ACK-09")
def test_a_dropped_record_gives_its_job_back(queue: Queue) -> None:
    for name in ("a", "b"):
        queue.put(name)
    record = queue.get_nowait()
    assert record.payload == "a"
    del record
    gc.collect()
    again = queue.get(timeout=WATCHDOG)
    assert (again.payload, again.retries, again.attempt) == ("a", 0, 2)


@pytest.mark.contract("ACK-09")
def test_a_record_dropped_in_a_cycle_gives_its_job_back(queue: Queue) -> None:
    queue.put("x")

    class Holder:
        def __init__(self, record: Any) -> None:
            self.record, self.me = record, self

    Holder(queue.get_nowait())
    gc.collect()
    assert queue.get(timeout=WATCHDOG).payload == "x"


@pytest.mark.contract("ACK-09")
def test_a_record_dropped_by_another_thread_gives_its_job_back(queue: Queue) -> None:
    queue.put("x")
    thread = threading.Thread(target=queue.get_nowait)
    thread.start()
    thread.join(WATCHDOG)
    assert queue.get(timeout=WATCHDOG).payload == "x"


@pytest.mark.contract("ACK-09")
def test_dropping_a_completed_record_changes_nothing(queue: Queue) -> None:
    queue.put("x")
    record = queue.get_nowait()
    record.ack()
    del record
    gc.collect()
    assert_counts(queue, done=1)
    queue.put("y")
    record = queue.get_nowait()
    record.release()
    held = queue.get_nowait()
    del record
    gc.collect()
    assert_counts(queue, running=1, done=1)
    held.ack()


@pytest.mark.contract("ACK-09")
def test_records_of_many_dropped_together(queue: Queue) -> None:
    queue.put_many(range(500))
    records = queue.get_many(500, timeout=0)
    del records
    gc.collect()
    assert drain_records(queue, 500) == list(range(500))


def drain_records(queue: Queue, count: int) -> list[Any]:
    payloads = []
    for _ in range(count):
        with queue.processing(timeout=WATCHDOG) as record:
            payloads.append(record.payload)
    return payloads


@pytest.mark.contract("ACK-09")
def test_a_record_can_be_weakly_referenced_or_kept(queue: Queue) -> None:
    queue.put("x")
    record = queue.get_nowait()
    kept = [record]
    del record
    gc.collect()
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    kept[0].ack()
    assert_counts(queue, done=1)
    assert isinstance(weakref.ref(queue), weakref.ref)


@pytest.mark.contract("ACK-09", "OWN-05")
def test_a_record_that_outlives_the_interpreter_does_no_harm(path: Path) -> None:
    assert run("q = Queue(path); q.put('x'); kept = q.get_nowait(); say('bye')", path) == "bye"
    with Queue(path) as queue:
        assert queue.get(timeout=WATCHDOG).payload == "x"


@pytest.mark.contract("OWN-05")
def test_closing_gives_unfinished_jobs_back_without_a_retry(path: Path) -> None:
    with Queue(path) as queue:
        queue.put_many(["a", "b"])
        held = queue.get_many(2, timeout=0)
    with Queue(path) as queue:
        again = queue.get_many(2, timeout=WATCHDOG)
        assert [(r.payload, r.retries, r.attempt) for r in again] == [("a", 0, 2), ("b", 0, 2)]
        queue.ack_many(again)
    assert len(held) == 2


@pytest.mark.contract("OWN-05")
def test_closing_a_store_gives_unfinished_jobs_back(path: Path) -> None:
    with Store(path) as store:
        store.queue("one").put("x")
        store.queue("two").put("y")
        held = [store.queue("one").get_nowait(), store.queue("two").get_nowait()]
    with Store(path) as store:
        assert drain(store.queue("one")) == ["x"]
        assert drain(store.queue("two")) == ["y"]
    assert len(held) == 2


@pytest.mark.contract("OWN-05")
def test_a_record_of_a_closed_handle_gives_its_job_back_when_dropped(path: Path) -> None:
    with Queue(path) as two:
        one: Queue = Queue(path)
        one.put_many(["one", "two"])
        lost = one.get_nowait()
        kept = two.get_nowait()
        one.close()
        del lost
        gc.collect()
        again = two.get(timeout=WATCHDOG)
        assert (again.payload, again.retries) == ("one", 0)
        kept.ack()
        again.ack()
        assert_counts(two, done=2)


@pytest.mark.contract("OWN-04")
def test_a_forked_child_does_not_give_its_parents_jobs_back(path: Path) -> None:
    run(
        """
        queue = Queue(path, sync="off")
        queue.put("x")
        record = queue.get_nowait()
        if (pid := os.fork()) == 0:
            del record              # dropped by the child, which never held it
            import gc; gc.collect()
            queue.put("from the child")
            queue.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert queue.stats()["running"] == 1, queue.stats()
        assert queue.recover() == 0
        record.ack()
        assert queue.get(timeout=60).payload == "from the child"
        """,
        path,
    )


@pytest.mark.contract("OWN-04")
def test_a_forked_childs_claims_are_its_own(path: Path) -> None:
    run(
        """
        queue = Queue(path, sync="off")
        queue.put_many(["parent", "child"])
        record = queue.get_nowait()
        if (pid := os.fork()) == 0:
            held = queue.get_nowait()
            assert held.payload == "child"
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        again = queue.get(timeout=60)
        assert (again.payload, again.retries) == ("child", 1)
        record.ack()
        again.ack()
        assert queue.stats()["done"] == 2
        """,
        path,
    )


@pytest.mark.contract("ACK-10")
def test_a_record_says_what_it_is_in_its_repr(queue: Queue) -> None:
    job_id = queue.put("secret payload")
    record = queue.get_nowait()
    assert str(job_id) in repr(record)
    assert "default" in repr(record)
    record.ack()


@pytest.mark.contract("ACK-09")
def test_dropping_records_amid_operations_is_safe(path: Path) -> None:
    """The collector may run anywhere, also inside a transaction."""
    run(
        """
        import gc
        gc.set_threshold(1)
        queue = Queue(path, sync="off")
        class Cycle:
            def __init__(self, record):
                self.record, self.me = record, self
        for number in range(300):
            queue.put(number)
            Cycle(queue.get(timeout=60))
            queue.stats()
        gc.collect()
        seen = set()
        while len(seen) < 300:
            record = queue.get(timeout=60)
            seen.add(record.payload)
            record.ack()
        assert queue.stats()["done"] == 300, queue.stats()
        assert Store(path).check().ok
        """,
        path,
        timeout=2 * WATCHDOG,
    )
