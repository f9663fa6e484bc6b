"""A dead worker's job is back at once; a living worker's job is never taken from it."""

from __future__ import annotations

import gc
import os
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import ClaimLost, Queue, QueueEmpty

from ._ledger import assert_sound
from ._procs import wait_state
from ._remote import Remote

Starter = Callable[..., Remote]
#: Consumers look at the owners' locks at least once a second, whatever else fails.
BACKSTOP = 1.0


def test_sigkill_gives_the_job_to_an_idle_consumer_within_100_ms(
    path: Path, remote: Starter
) -> None:
    idle = remote()
    delays: list[float] = []
    with Queue(path, sync="off") as queue:
        for _ in range(9):
            job_id = queue.put("work")
            worker = remote()
            assert worker.call("get", 10) == {"id": job_id, "attempt": 1, "payload": "work"}
            idle.send_and_sleep("get", 30)
            killed_at = worker.kill()
            taken = idle.reply()
            delays.append(idle.at - killed_at)
            assert (taken["id"], taken["attempt"]) == (job_id, 2)
            assert queue.job(job_id).retries == 1, "a crash counts as a retry"
            idle.call("complete", "ack", job_id)
        assert_sound(queue.store)
    assert max(delays) < 2 * BACKSTOP
    assert statistics.median(delays) < 0.1


def test_everything_a_killed_worker_held_comes_back_in_order(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        ids = queue.put_many(list("abcde"))
        worker = remote()
        assert [worker.call("get", 10)["id"] for _ in ids] == ids
        idle = remote()
        idle.send_and_sleep("get", 30)
        worker.kill()
        assert idle.reply()["id"] == ids[0]
        assert [idle.call("get", 10)["id"] for _ in ids[1:]] == ids[1:]


@pytest.mark.parametrize("way", ["close", "exit"])
def test_a_worker_that_leaves_gives_its_job_back(path: Path, remote: Starter, way: str) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker = remote()
        worker.call("get", 10)
        idle = remote()
        idle.send_and_sleep("get", 30)
        if way == "close":
            worker.call("close")
        else:
            worker.child.hang_up()
        left_at = time.monotonic()
        assert idle.reply()["id"] == job_id
        assert idle.at - left_at < 2 * BACKSTOP
        if way == "close":
            assert queue.job(job_id).retries == 0, "a shutdown in order costs no retry"


def test_a_forked_child_that_lives_on_does_not_keep_the_claim(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker, idle = remote(), remote()
        worker.call("get", 10)
        survivor = worker.call("fork_sleeper")
        idle.send_and_sleep("get", 30)
        killed_at = worker.kill()
        assert idle.reply()["id"] == job_id
        os.kill(survivor, signal.SIGKILL)
        assert idle.at - killed_at < 2 * BACKSTOP


def test_a_job_that_kills_its_worker_ends_as_failed(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("poison", max_retries=2)
        for attempt in (1, 2, 3):
            worker = remote()
            assert worker.call("get", 10)["attempt"] == attempt
            worker.kill()
            worker.child.wait()
        queue.recover()
        assert queue.job(job_id).state.value == "failed"
        assert len(queue.job(job_id).errors) >= 1
        with pytest.raises(QueueEmpty):
            queue.get_nowait()
        assert_sound(queue.store)


HOLDS = 2.5 * BACKSTOP


def hold_on(worker: Remote) -> None:
    """The handler takes its time, in Python."""


def block_the_interpreter(worker: Remote) -> None:
    """The handler sits in C code and no other thread of the process can run."""
    worker.send("block_interpreter", HOLDS)


def stop(worker: Remote) -> None:
    """Someone suspends the process."""
    worker.child.signal(signal.SIGSTOP)
    wait_state(worker.pid, "T")


@pytest.mark.parametrize("trouble", [hold_on, block_the_interpreter, stop])
def test_a_living_worker_keeps_its_job(
    path: Path, remote: Starter, trouble: Callable[[Remote], None]
) -> None:
    with Queue(path, sync="off", recover_interval=0.01) as queue:
        job_id = queue.put("work")
        worker = remote()
        worker.call("get", 10)
        trouble(worker)

        with pytest.raises(QueueEmpty):
            queue.get(HOLDS)
        assert queue.recover() == 0
        assert queue.job(job_id).state.value == "running"

        if trouble is block_the_interpreter:
            worker.reply()
        worker.child.signal(signal.SIGCONT)
        worker.call("complete", "ack", job_id)
        assert queue.job(job_id).state.value == "done"
        assert_sound(queue.store)


LEASE = 0.3


def test_an_expired_lease_gives_the_job_away(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker, other = remote(lease_time=LEASE), remote()
        worker.call("get", 10)
        claimed_at = worker.at
        assert other.call("get", 30) == {"id": job_id, "attempt": 2, "payload": "work"}
        assert other.at - claimed_at > 0.9 * LEASE

        before = queue.job(job_id), queue.stats()
        for verb, *args in (["ack"], ["nack"], ["fail"], ["release"], ["extend", 60]):
            with pytest.raises(ClaimLost):
                worker.call("complete", verb, job_id, *args)
        assert (queue.job(job_id), queue.stats()) == before

        other.call("complete", "ack", job_id)
        with pytest.raises(ClaimLost):
            worker.call("complete", "ack", job_id)
        assert queue.job(job_id).state.value == "done"
        assert_sound(queue.store)


def test_a_stopped_worker_loses_its_job_when_the_lease_ends(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker, other = remote(lease_time=LEASE), remote()
        worker.call("get", 10)
        stop(worker)
        assert other.call("get", 30)["attempt"] == 2
        worker.child.signal(signal.SIGCONT)
        with pytest.raises(ClaimLost):
            worker.call("complete", "ack", job_id)
        other.call("complete", "ack", job_id)
        assert queue.stats()["done"] == 1


def test_extend_keeps_a_leased_job(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker = remote(lease_time=1.0)
        worker.call("get", 10)
        worker.call("complete", "extend", job_id, 3600)
        with pytest.raises(QueueEmpty):
            queue.get(1.5)
        worker.call("complete", "ack", job_id)
        assert queue.job(job_id).state.value == "done"


def test_a_dead_worker_with_a_lease_is_not_waited_for(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker, idle = remote(lease_time=3600), remote()
        worker.call("get", 10)
        idle.send_and_sleep("get", 30)
        killed_at = worker.kill()
        assert idle.reply()["id"] == job_id
        assert idle.at - killed_at < 2 * BACKSTOP


def test_recovery_twice_is_the_same_as_once(path: Path, remote: Starter) -> None:
    with Queue(path, sync="off") as queue:
        job_id = queue.put("work")
        worker = remote()
        worker.call("get", 10)
        worker.kill()
        worker.child.wait()
        assert queue.recover() == 1
        after = queue.job(job_id), queue.stats()
        assert queue.recover() == 0
        assert (queue.job(job_id), queue.stats()) == after


@pytest.mark.parametrize("sync", ["off", "normal", "full"])
def test_a_dropped_record_is_back_without_the_garbage_collector(
    path: Path, remote: Starter, sync: str
) -> None:
    with Queue(path, sync=sync) as queue:
        job_id = queue.put("work")
        other = remote()
        gc.disable()
        try:
            record = queue.get(10)
            del record
            queue.stats()  # any operation of this process
            queue.put("next", priority=1)
            assert other.call("get", 0)["id"] == job_id
        finally:
            gc.enable()
