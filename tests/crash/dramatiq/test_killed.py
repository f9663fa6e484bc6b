"""Processes that are killed: nothing is lost, and nothing is done again that had been acked."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from dramatiq import Message

from .._procs import wait_until
from .._watch import Gate, stopped
from ._application import Application, run_of
from ._commands import SERVED, Command, Starter, Watch

pytestmark = pytest.mark.once

PROMPT = 2.0
"""Seconds within which a dead worker's message runs elsewhere on a busy machine; 0.1 is the aim."""


def again(tokens: Iterable[str]) -> list[str]:
    """The second runs of messages that failed."""
    return [f"{token}+1" for token in tokens]


@pytest.mark.contract("DRW-03")
@pytest.mark.parametrize("program", ["dramatiq", "dramatiq-gevent"])
def test_a_killed_workers_message_runs_elsewhere_at_once(
    application: Application, watch: Watch, gate: Gate, start: Starter, program: str
) -> None:
    command = start(6, 1, program=program)
    left = set(command.workers())
    delays = []
    # Dramatiq's master ends all workers when one has died: it does not notice now.
    with stopped(command.pid):
        application.send("hold", "work")
        runs = watch.wait("start", "work")
        while len(left) > 1:
            victim = runs[-1].pid
            left.remove(victim)
            killed_at = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            runs = watch.wait("start", "work", len(runs) + 1)
            delays.append(runs[-1].at - killed_at)
    print(f"{program}: {statistics.median(delays) * 1000:.1f} ms, {max(delays) * 1000:.1f} at most")
    assert max(delays) < PROMPT
    assert [run.retries for run in runs] == list(range(6))


def kill_worker(command: Command) -> list[int]:
    """One of several; Dramatiq's master then ends the others in order, and itself."""
    workers = command.workers()
    os.kill(workers[0], signal.SIGKILL)
    return workers[:1]


def kill_master(command: Command) -> list[int]:
    """Only the master: the workers go on without it."""
    command.signal(signal.SIGKILL)
    assert command.ended() == -signal.SIGKILL
    return []


def kill_group(command: Command) -> list[int]:
    """All of it at once, as the kernel does that runs out of memory, or a container's end."""
    workers = command.workers()
    command.kill_group()
    return workers


@pytest.mark.contract("DRW-06")
@pytest.mark.parametrize(
    ("kill", "way"),
    [
        (kill_worker, ()),
        (kill_worker, ("--use-spawn",)),
        (kill_master, ()),
        (kill_group, ("--fork-function", f"{SERVED}:scheduler")),
    ],
)
def test_nothing_is_lost_and_nothing_that_was_acked_is_done_again(
    application: Application,
    watch: Watch,
    gate: Gate,
    start: Starter,
    kill: Callable[[Command], list[int]],
    way: tuple[str, ...],
) -> None:
    first = start(3, 2, *way)
    first.workers()
    for number in range(6):
        application.send("hold", f"held-{number}")
    held = {event.token for event in watch.wait("start", count=6)}
    assert len(held) == 6
    quick = [f"quick-{number}" for number in range(100)]
    delayed = [f"delayed-{number}" for number in range(20)]
    due = time.monotonic() + 1.0
    for token in delayed:
        application.send("mark", token, delay=1000)
    for token in quick[:50]:
        application.send("mark", token)
    scheduled = [f"scheduled-{number}" for number in range(50)] if "--fork-function" in way else []
    if scheduled:
        watch.wait("scheduled")

    killed = kill(first)
    start(2, 2, "--use-spawn")
    for token in quick[50:]:
        application.send("fails_once", token)
    gate.open()
    everything = [*held, *quick, *delayed, *scheduled]
    application.join()
    watch.check([*everything, *again(quick[50:])], killed)
    assert min(event.at for event in watch.of("due") if event.token in delayed) > due - 0.1
    assert application.broker.stats("default")["failed"] == 0
    restarted = [event for event in watch.of("start") if event.retries]
    assert {event.token for event in restarted} <= held, "only what ran in a killed process"
    assert len(restarted) == 2 * len(killed)


@pytest.mark.contract("DRM-08", "DRW-06")
def test_delayed_messages_run_at_their_time_when_their_workers_were_killed(
    application: Application, watch: Watch, start: Starter
) -> None:
    """With RedisBroker they would be in the memory of the one that was killed."""
    first = start(2, 1)
    first.workers()
    due = {}
    for number in range(20):
        due[f"{number}"] = time.monotonic() + 0.5 + 0.05 * number
        application.send("mark", number, delay=500 + 50 * number)
    first.kill_group()
    first.ended()
    second = start(1, 1)
    second.workers()
    ready_at = time.monotonic()
    starts = watch.wait("start", count=20)
    late = [event.at - max(due[event.token], ready_at) for event in starts]
    print(f"late: {statistics.median(late) * 1000:.1f} ms, {max(late) * 1000:.1f} at most")
    assert min(event.at - due[event.token] for event in starts) > -0.01, "too early"
    assert max(late) < PROMPT
    assert [event.retries for event in starts] == [0] * 20
    assert [event.token for event in starts] == list(due)


LIMIT = 3


@pytest.mark.contract("DRM-15")
def test_a_message_that_kills_its_worker_each_time_becomes_a_dead_letter(
    application: Application, watch: Watch, start: Starter
) -> None:
    command = start(LIMIT + 2, 1, options={"delivery_limit": LIMIT})
    command.workers()
    with stopped(command.pid):
        application.send("poison", "poison")
        starts = watch.wait("start", "poison", LIMIT + 1)
        queue = application.broker.queue("default")
        wait_until(lambda: queue.stats()["failed"] == 1, "it is a dead letter")
        application.send("mark", "next")
        watch.wait("acked", "next")
    assert [event.retries for event in starts] == list(range(LIMIT + 1))
    assert len({event.pid for event in starts}) == LIMIT + 1
    assert len(watch.of("start", "poison")) == LIMIT + 1
    (letter,) = queue.jobs("failed")
    assert application.message("poison", "").decode(letter.payload).args == ("poison",)
    assert letter.finished_at is not None
    print(letter.errors[-1])
    assert "died" in letter.errors[-1].message


KEPT = {"done_message_ttl": 10**9}
"""Messages that are done can be looked at afterwards."""


class Producer:
    """Sends messages of all kinds, and remembers what should come of them."""

    def __init__(self, application: Application, rnd: random.Random) -> None:
        self._application = application
        self._random = rnd
        self.runs: list[str] = []
        self.answers: list[Message[Any]] = []

    def send(self) -> None:
        token = str(len(self.runs))
        kind = self._random.choice(["mark", "fails_once", "chain", "answer"])
        delay = self._random.choice([None, None, self._random.randrange(300)])
        if kind == "chain":
            chain = [f"{token}.{step}" for step in range(3)]
            self._application.send_chain(chain)
            self.runs += chain
            return
        message = self._application.message(kind, token)
        self._application.broker.enqueue(message, delay=delay)
        self.runs.append(token)
        if kind == "fails_once":
            self.runs += again([token])
        elif kind == "answer":
            self.answers.append(message)


@pytest.mark.contract("DRW-06", "DRE-01", "DRE-02")
@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.torture)])
def test_kills_at_random(tmp_path: Path, watch: Watch, start: Starter, kills: int) -> None:
    """Two commands; a process of one of them is killed, or a whole command, while work comes in."""
    rnd = random.Random(kills)
    application = Application(tmp_path, sync="off", **KEPT)
    producer = Producer(application, rnd)
    commands = [start(2, 3, options=KEPT) for _ in range(2)]
    killed: list[int] = []
    while len(killed) < kills:
        for _ in range(rnd.randrange(20, 200)):
            producer.send()
        command = rnd.choice(commands)
        victims = command.workers()
        if rnd.random() < 0.5:
            victims = victims[:1]
            os.kill(victims[0], signal.SIGKILL)
        else:
            command.kill_group()
        killed += victims
        commands[commands.index(command)] = start(2, 3, options=KEPT)
    application.join()
    watch.check(producer.runs, killed)

    # A retry, and the next of a chain, comes with the ack: never none, and never two.
    assert Counter(map(run_of, application.done())) == Counter(producer.runs)
    for message in producer.answers:
        result = application.results.get_result(message)
        assert result == f"result of {message.args[0]}"
    application.close()
