"""Programs of test_nothing_lost: drain a queue; kill producers and consumers at random."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import traceback

from equeue_core import Queue, QueueEmpty

from ._ledger import Journal
from ._talk import hear, say
from ._work import MANY, Worker

PRODUCERS = 3
CONSUMERS = 4


def drain(path: str, threads: str) -> None:
    """All threads take and ack until the queue is empty; says the ids that each one got."""
    queue = Queue(path)
    queue.stats()
    say("ready")
    hear()
    got: list[list[int]] = [[] for _ in range(int(threads))]

    def work(ids: list[int]) -> None:
        while True:
            try:
                record = queue.get_nowait()
            except QueueEmpty:
                return
            ids.append(record.job_id)
            record.ack()

    workers = [threading.Thread(target=work, args=(ids,)) for ids in got]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    say(json.dumps(got))


def drive(path: str, journal: str, seconds: str, seed: str) -> None:
    """Kill and replace a random child every few milliseconds; says how many were killed."""
    driver = _Driver(path, journal, random.Random(seed))
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        time.sleep(driver.random.uniform(0.001, 0.06))
        driver.replace()
    driver.kill_all()
    say(driver.killed)


def beginnings(path: str, journal: str, trials: str) -> None:
    """Again and again several processes make a new store at once, and some of them are killed."""
    rnd = random.Random(1)
    for trial in range(int(trials)):
        pids = [_beginner(f"{path}.{trial}", journal, f"{trial}.{number}") for number in range(4)]
        time.sleep(rnd.uniform(0, 0.012))
        for pid in pids[:2]:
            os.kill(pid, signal.SIGKILL)
        for pid in pids[:2]:
            os.waitpid(pid, 0)
        for pid in pids[2:]:
            _, status = os.waitpid(pid, 0)
            assert status == 0, f"trial {trial}: a child ended with status {status}"
    say("done")


def _beginner(path: str, journal: str, name: str) -> int:
    pid = os.fork()
    if not pid:
        status = 1
        try:
            signal.alarm(60)
            Worker(Queue(path), Journal(journal), name).put()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


class _Driver:
    def __init__(self, path: str, journal: str, rnd: random.Random) -> None:
        self.path = path
        self.journal = journal
        self.random = rnd
        self.killed = 0
        self._roles: dict[int, str] = {}
        self._born = 0
        for role in ["produce"] * PRODUCERS + ["consume"] * CONSUMERS:
            self._start(role)

    def _start(self, role: str) -> None:
        self._born += 1
        pid = os.fork()
        if pid:
            self._roles[pid] = role
        else:
            try:
                self._child(role)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)

    def _child(self, role: str) -> None:
        queue = Queue(self.path, max_retries=MANY, vacuum_interval=86400)
        journal = Journal(self.journal)
        for thread in range(2):
            worker = Worker(queue, journal, f"{self._born}.{thread}")
            work = worker.produce if role == "produce" else worker.consume
            threading.Thread(target=_or_die, args=(work,)).start()
        while True:
            signal.pause()

    def replace(self) -> None:
        pid = self.random.choice(list(self._roles))
        os.kill(pid, signal.SIGKILL)
        self._reap(pid)
        self._start(self._roles.pop(pid))

    def kill_all(self) -> None:
        for pid in self._roles:
            os.kill(pid, signal.SIGKILL)
        for pid in list(self._roles):
            self._reap(pid)

    def _reap(self, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"a child ended by itself with status {status}"
        self.killed += 1


def _or_die(work: object) -> None:
    try:
        work(lambda: True)  # type: ignore[operator]
    except BaseException:
        traceback.print_exc()
    os._exit(1)
