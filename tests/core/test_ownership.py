"""Whose job it is, and when it is another's."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue, QueueEmpty, Store
from tests.contract.clock import Clock
from tests.contract.helpers import LATER, WATCHDOG, assert_counts, drain, snapshot, state_of
from tests.core.children import child, run

HOLD = """
queue = Queue(path, sync="off")
record = queue.get(timeout=60)
say("holding", record.job_id)
hear()
"""


@pytest.mark.contract("OWN-01")
def test_a_killed_workers_job_is_delivered_again(queue: Queue, path: Path) -> None:
    job_id = queue.put("x")
    with child(HOLD, path) as worker:
        assert worker.hear() == f"holding {job_id}"
        worker.kill()
    again = queue.get(timeout=WATCHDOG)
    assert (again.job_id, again.retries, again.attempt) == (job_id, 1, 2)
    again.ack()
    assert_counts(queue, done=1)


@pytest.mark.contract("OWN-01")
def test_who_waits_gets_a_killed_workers_job(queue: Queue, path: Path) -> None:
    queue.put("x")
    got = []
    with child(HOLD, path) as worker:
        worker.hear()
        thread = threading.Thread(target=lambda: got.append(queue.get(timeout=WATCHDOG)))
        thread.start()
        thread.join(0.05)
        worker.kill()
        thread.join(WATCHDOG)
    assert [record.payload for record in got] == ["x"]


@pytest.mark.contract("OWN-01")
@pytest.mark.parametrize("deaths", [1, 2])
def test_who_comes_after_a_death_does_not_wait_for_the_next_look_around(
    path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    monkeypatch.setattr("equeue_core._consumer.BACKSTOP", LATER)
    with Queue(path, sync="off", recover_interval=LATER) as queue:
        for _ in range(deaths):
            queue.put("x")
            queue.recover()
            if (pid := os.fork()) == 0:
                held = queue.get_nowait()
                os._exit(held.job_id)
            os.waitpid(pid, 0)
            record = queue.get(timeout=WATCHDOG)
            assert (record.payload, record.retries) == ("x", 1)
            record.ack()


@pytest.mark.contract("OWN-01", "ORD-04")
def test_a_killed_workers_job_keeps_its_place(queue: Queue, path: Path) -> None:
    queue.put_many(["a", "b", "c"])
    with child(HOLD, path) as worker:
        worker.hear()
        worker.kill()
    queue.recover()
    assert drain(queue) == ["a", "b", "c"]


@pytest.mark.contract("OWN-01")
def test_a_worker_that_exits_leaves_no_job_behind(queue: Queue, path: Path) -> None:
    queue.put("x")
    with child(HOLD, path) as worker:
        worker.hear()
        worker.say("go on")
        assert worker.wait() == 0
    assert queue.get(timeout=WATCHDOG).payload == "x"


def hold_and_return(queue: Queue) -> None:
    """What a child process does: it claims a job, and ends."""
    global _held
    _held = queue.get(timeout=WATCHDOG)


@pytest.mark.contract("OWN-05")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_child_of_multiprocessing_that_ends_spends_no_retry(queue: Queue, method: str) -> None:
    job_id = queue.put("x")
    process = multiprocessing.get_context(method).Process(target=hold_and_return, args=(queue,))
    process.start()
    process.join(WATCHDOG)
    assert process.exitcode == 0
    again = queue.get(timeout=WATCHDOG)
    assert (again.job_id, again.retries) == (job_id, 0)


def hold_and_tell(path: Path, told: Any) -> None:
    """What a child process does that tells by a ``multiprocessing.Queue`` what it has."""
    hold_and_return(Queue(path))
    told.put("x" * 1_000_000)


@pytest.mark.contract("OWN-05")
def test_also_if_the_thread_of_a_multiprocessing_queue_is_there(queue: Queue, path: Path) -> None:
    queue.put("x")
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    process = context.Process(target=hold_and_tell, args=(path, told))
    process.start()
    assert told.get(timeout=WATCHDOG)
    process.join(WATCHDOG)
    assert queue.get(timeout=WATCHDOG).retries == 0


@pytest.mark.contract("OWN-05")
def test_also_if_the_child_is_the_first_to_import_the_store(queue: Queue, path: Path) -> None:
    queue.put("x")
    program = """if True:
        import multiprocessing, sys
        def work():
            global held
            from equeue_core import Queue
            held = Queue(sys.argv[1]).get()
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        assert "equeue_core" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=WATCHDOG)
    assert queue.get(timeout=WATCHDOG).retries == 0


@pytest.mark.contract("OWN-05")
def test_also_if_multiprocessing_was_imported_later(queue: Queue, path: Path) -> None:
    queue.put("x")
    script = """
        import sys
        assert "multiprocessing" not in sys.modules
        queue = Queue(path)
        import multiprocessing
        held = []
        def work():
            held.append(queue.get())
            sys.exit(7)
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        say(process.exitcode)
    """
    assert run(script, path) == "7"
    assert queue.get(timeout=WATCHDOG).retries == 0


@pytest.mark.contract("OWN-01")
def test_a_killed_workers_many_jobs_are_all_delivered_again(queue: Queue, path: Path) -> None:
    queue.put_many(range(2500))
    with child("r = Queue(path).get_many(2500); say('holding'); hear()", path) as worker:
        worker.hear()
        assert_counts(queue, running=2500)
        worker.kill()
    seen: list[int] = []
    while len(seen) < 2500:
        records = queue.get_many(1000, timeout=WATCHDOG)
        seen += [record.payload for record in records]
        queue.ack_many(records)
    assert seen == list(range(2500))
    assert_counts(queue, done=2500)


@pytest.mark.contract("OWN-02")
def test_a_live_worker_keeps_its_job(queue: Queue, path: Path) -> None:
    job_id = queue.put("x")
    with child(HOLD + "record.ack(); say('done')", path) as worker:
        worker.hear()
        for _ in range(3):
            assert queue.recover() == 0
            with pytest.raises(QueueEmpty):
                queue.get(timeout=0.01)
        assert queue.job(job_id).attempts == 1
        worker.say("go on")
        assert worker.hear() == "done"
    assert_counts(queue, done=1)


@pytest.mark.contract("OWN-02")
def test_time_alone_takes_no_job_away(queue: Queue, clock: Clock) -> None:
    job_id = queue.put("x")
    record = queue.get_nowait()
    clock.advance(10 * 24 * 3600)
    assert queue.recover() == 0
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    record.ack()
    assert state_of(queue, job_id) == "done"


@pytest.mark.contract("RET-09")
def test_a_job_that_kills_its_workers_fails_in_the_end(path: Path) -> None:
    with Queue(path, sync="off", max_retries=2) as queue:
        job_id = queue.put("poison")
        queue.put("harmless", priority=1)
        for _ in range(3):
            assert_counts(queue, pending=2)
            options = "Queue(path, sync='off', max_retries=2)"
            with child(f"r = {options}.get(timeout=60); say(r.payload); hear()", path) as worker:
                assert worker.hear() == "poison"
                worker.kill()
            queue.recover()
        assert_counts(queue, pending=1, failed=1)
        assert queue.get(timeout=0).payload == "harmless"
        job = queue.job(job_id)
        assert (job.attempts, job.retries) == (3, 3)
        assert [error.attempt for error in job.errors] == [1, 2, 3]
        assert all(error.message for error in job.errors)


@pytest.mark.contract("CNT-06")
def test_recovering_after_a_crash_twice_is_recovering_once(queue: Queue, path: Path) -> None:
    queue.put("x")
    with child(HOLD, path) as worker:
        worker.hear()
        worker.kill()
    assert queue.recover() == 1
    before = snapshot(queue)
    assert queue.recover() == 0
    assert snapshot(queue) == before
    assert_counts(queue, pending=1)


@pytest.mark.contract("OWN-06")
def test_without_do_recover_a_handle_takes_nothing_over(queue: Queue, path: Path) -> None:
    queue.put("x")
    with child(HOLD, path) as worker:
        worker.hear()
        worker.kill()
    with Queue(path, do_recover=False) as passive:
        for timeout in (0, 0.05):
            with pytest.raises(QueueEmpty):
                passive.get(timeout=timeout)
        assert_counts(passive, running=1)
        assert passive.recover() == 1
        assert passive.get_nowait().payload == "x"


@pytest.mark.contract("OWN-03")
def test_owners_are_the_processes_that_hold_jobs(store: Store, path: Path) -> None:
    queue = store.queue()
    queue.put_many(["x", "y"])
    assert store.owners() == []
    with child(HOLD, path) as worker:
        worker.hear()
        (owner,) = store.owners()
        assert owner.pid == worker.pid
        assert owner.host
        assert owner.since > 0
        assert queue.job(1).owner == owner.owner_id
        held = queue.get_nowait()
        assert len({one.owner_id for one in store.owners()}) == 2
        held.ack()
        worker.kill()
    queue.recover()
    assert worker.pid not in {one.pid for one in store.owners()}


@pytest.mark.contract("CNT-07")
def test_two_processes_never_get_the_same_job(queue: Queue, path: Path) -> None:
    queue.put_many(range(3000))
    drain = """
    queue = Queue(path, sync="off")
    seen = []
    def work():
        while True:
            try:
                record = queue.get(timeout=0)
            except QueueEmpty:
                return
            seen.append(record.job_id)
            record.ack()
    say("ready")
    hear()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    say(json.dumps(seen))
    """
    with child(drain, path) as one, child(drain, path) as two, child(drain, path) as three:
        workers = (one, two, three)
        for worker in workers:
            worker.hear()
        for worker in workers:
            worker.say("go")
        seen = [job_id for worker in workers for job_id in json.loads(worker.hear())]
    assert sorted(seen) == list(range(1, 3001))
    assert_counts(queue, done=3000)


@pytest.mark.contract("PAU-04")
def test_a_pause_holds_in_every_process(queue: Queue, path: Path) -> None:
    queue.put("x")
    script = """
    queue = Queue(path, sync="off")
    while hear() == "try":
        try:
            say(queue.get(timeout=0).payload)
        except QueueEmpty:
            say("nothing", queue.paused)
    say(queue.get(timeout=60).payload)
    """
    with child(script, path) as other:
        queue.pause()
        other.say("try")
        assert other.hear() == "nothing True"
        other.say("wait")
        queue.resume()
        assert other.hear() == "x"


@pytest.mark.contract("PAU-04")
def test_a_pause_can_be_ended_by_another_process(queue: Queue, path: Path) -> None:
    queue.pause()
    run("Queue(path).resume()", path)
    assert queue.paused is False


@pytest.mark.contract("OWN-01", "TXN-01")
def test_a_job_moved_in_a_transaction_is_never_doubled_or_lost(path: Path) -> None:
    """Workers that move jobs from queue to queue are killed at some moment."""
    script = """
    store = Store(path, sync="off")
    here, there = store.queue(sys.argv[2]), store.queue(sys.argv[3])
    say("ready")
    while True:
        try:
            record = here.get(timeout=0)
        except QueueEmpty:
            here, there = there, here
            continue
        with store.transaction() as tx:
            tx.ack(record)
            tx.put(there, record.payload)
        if record.job_id % 20 == 0:
            say("moved")
    """
    with Store(path, sync="off") as store:
        one, two = store.queue("one"), store.queue("two")
        one.put_many(range(20), max_retries=1000)
        for _ in range(4):
            with child(script, path, "one", "two") as worker:
                assert worker.hear() == "ready"
                assert worker.hear() == "moved"
                assert worker.hear() == "moved"
                worker.kill()
        one.recover()
        two.recover()
        assert one.qsize() + two.qsize() + one.stats()["failed"] + two.stats()["failed"] == 20
        assert store.check().ok
        found = [job.payload for queue in (one, two) for job in queue.jobs("pending")]
        assert sorted(found) == list(range(20))
