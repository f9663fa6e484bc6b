"""Processes that live: what they run stays theirs, and work is shared out as it should be."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time

import pytest

from .._procs import wait_state
from .._watch import Gate
from ._application import Application
from ._commands import Starter, Watch

pytestmark = pytest.mark.once

PROMPT = 2.0
"""Seconds that a busy machine may add to what is to happen at once."""

HOLDS = 3.5
"""Seconds; idle consumers look for dead owners at least once a second."""


@pytest.mark.contract("DRW-02")
def test_a_message_in_progress_in_a_live_process_is_never_delivered_twice(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    busy = start(2, 1)
    blocked, paused = busy.workers()
    application.send("block", "blocked", HOLDS)
    watch.wait("start", "blocked")
    application.send("hold", "paused")
    watch.wait("start", "paused")
    pid = watch.of("start", "paused")[0].pid
    assert {pid, watch.of("start", "blocked")[0].pid} == {blocked, paused}
    stop_outside_transactions(application, pid)

    (free,) = start(1, 2).workers()
    application.send("mark", "free")
    watch.wait("acked", "free")
    watch.wait("held", "blocked")
    assert [event.token for event in watch.of("start") if event.pid == free] == ["free"]

    os.kill(pid, signal.SIGCONT)
    gate.open()
    application.join()
    watch.check(["blocked", "paused", "free"])
    assert {event.retries for event in watch.of("start")} == {0}


def stop_outside_transactions(application: Application, pid: int) -> None:
    """SIGSTOP, but not where the process holds the store's lock: everybody would wait for it."""
    with (application.directory / "store" / "lock").open() as lock:
        while True:
            os.kill(pid, signal.SIGSTOP)
            wait_state(pid, "T")
            for _ in range(100):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(0.001)  # another process, in a transaction
            os.kill(pid, signal.SIGCONT)


@pytest.mark.contract("DRW-04")
def test_fifteen_tasks_of_a_second_on_fifteen_processes(
    application: Application, watch: Watch, start: Starter
) -> None:
    command = start(15, 1)
    workers = command.workers()
    tasks = [f"{number}" for number in range(15)]
    application.broker.enqueue_many([application.message("nap", task, 1.0) for task in tasks])
    application.join()
    watch.check(tasks)
    starts, ends = watch.of("start"), watch.of("held")
    took = max(event.at for event in ends) - min(event.at for event in starts)
    print(f"fifteen tasks of 1 s on {len(workers)} processes: {took:.2f} s")
    assert took < 4, "some waited behind others"


THREADS = 3


@pytest.mark.contract("DRM-09")
def test_an_urgent_message_runs_before_a_thousand_others(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    """Whoever is free next takes it, in whichever process."""
    command = start(THREADS, 1)
    command.workers()
    for number in range(THREADS):
        application.send("hold", f"held-{number}")
    watch.wait("start", count=THREADS)
    low = [application.message("mark", f"low-{number}") for number in range(1000)]
    application.broker.enqueue_many(low)
    application.send("urgent", "urgent")
    gate.open()
    application.join()
    order = [event.token for event in watch.of("start")[THREADS:]]
    # Several threads write down their starts at the same time.
    assert order.index("urgent") < THREADS
    watch.check(order)
    assert len(order) == 1001


@pytest.mark.contract("DRM-09", "DRW-04")
def test_an_urgent_message_overtakes_what_is_being_worked_off(
    application: Application, watch: Watch, start: Starter
) -> None:
    """A few are claimed ahead of free threads, as many as are done in some milliseconds."""
    command = start(2, 1)
    command.workers()
    low = [application.message("mark", f"low-{number}") for number in range(4000)]
    application.broker.enqueue_many(low)
    watch.wait("acked", count=500)
    application.send("urgent", "urgent")
    sent_at = time.monotonic()
    application.join()
    (urgent,) = watch.of("start", "urgent")
    between = [event for event in watch.of("start") if sent_at < event.at < urgent.at]
    print(f"{len(between)} in {(urgent.at - sent_at) * 1000:.1f} ms before the urgent one")
    assert len(between) <= 2 * 70


_CONTAINER = ("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.contract("DRW-03")
def test_workers_with_the_same_process_number(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    """As in two containers that share a volume."""
    if not shutil.which("unshare") or subprocess.run([*_CONTAINER, "true"], check=False).returncode:
        pytest.skip("this user cannot make pid namespaces here")
    one = start(1, 1, prefix=_CONTAINER)
    one.workers()
    application.send("hold", "first")
    watch.wait("start", "first")
    two = start(1, 1, prefix=_CONTAINER)
    assert one.workers() == two.workers()
    application.send("mark", "second")
    (second,) = watch.wait("acked", "second")
    killed_at = time.monotonic()
    one.kill_group()
    first = watch.wait("start", "first", 2)
    assert [event.command for event in (*first, second)] == [one.name, two.name, two.name]
    assert first[1].retries == 1
    print(f"in the other container after {(first[1].at - killed_at) * 1000:.1f} ms")
    assert first[1].at - killed_at < PROMPT
    gate.open()
    application.join()
    assert len(watch.of("start")) == 3
