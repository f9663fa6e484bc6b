"""Everything is killed at random, again and again: no job vanishes, and none is run again without need."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from rq import Retry

from .._procs import wait_until
from .._watch import Watch
from ._application import Application
from ._commands import Command, Starter

pytestmark = pytest.mark.once

QUEUES = ("default", "low")

BACKLOG = 60
"""With so many jobs in the queues, no more are enqueued: a slow machine would have to work them off."""


class Enqueuer:
    """Enqueues jobs of all kinds.

    Attributes:
        retries: of each job, as many as it was given.
    """

    def __init__(self, application: Application, rnd: random.Random) -> None:
        self._application = application
        self._random = rnd
        self.retries: dict[str, int] = {}

    def enqueue(self, number: int) -> None:
        calls = [("mark", ()), ("nap", (0.02,)), ("trip", ()), ("poison", ())]
        for _ in range(number):
            (function, arguments), retries = (
                self._random.choices(calls, [5, 5, 2, 1])[0],
                self._random.choice([0, 0, 1, 5]),
            )
            job = f"job-{len(self.retries)}"
            self.retries[job] = retries
            self._application.enqueue(
                function,
                job,
                *arguments,
                queue=self._random.choice(QUEUES),
                retry=Retry(max=retries) if retries else None,
                result_ttl=86400,
            )


def commands(start: Starter, rnd: random.Random) -> Iterator[Command]:
    """Workers of all classes, of one queue or two, and pools; several in turn have the same name."""
    while True:
        kind = rnd.choice(["Worker", "Worker", "SpawnWorker", "SimpleWorker", "pool", "named"])
        queues = rnd.choice([("default",), ("default", "low"), ("low", "default")])
        if kind == "pool":
            yield start(*queues, processes=2)
        elif kind == "named":
            yield start(*queues, name="named")
        else:
            yield start(*queues, worker_class=kind)


def over(application: Application) -> tuple[set[str], set[str]]:
    """The jobs that are known as finished, and those that are known as failed."""
    queues = [application.queue(name) for name in QUEUES]
    return (
        {job for queue in queues for job in queue.finished_job_registry.get_job_ids()},
        {job for queue in queues for job in queue.failed_job_registry.get_job_ids()},
    )


@pytest.mark.contract("RQW-06")
@pytest.mark.parametrize("rounds", [4, pytest.param(150, marks=pytest.mark.torture)])
@pytest.mark.timeout(1800)
def test_kills_at_random(
    application: Application, watch: Watch, start: Starter, rounds: int
) -> None:
    rnd = random.Random(rounds)
    enqueuer = Enqueuer(application, rnd)
    new = commands(start, rnd)
    running: list[Command] = []
    orphans: list[Command] = []
    finished_at: dict[str, float] = {}
    for _ in range(rounds):
        if sum(len(application.queue(name)) for name in QUEUES) < BACKLOG:
            enqueuer.enqueue(rnd.randrange(10, 40))
        running += [next(new) for _ in range(3 - len(running))]
        time.sleep(rnd.uniform(0.2, 1.5))  # any instant will do
        for command in rnd.sample(running, rnd.choice([1, 2, 3])):
            running.remove(command)
            if rnd.random() < 0.3:
                command.signal(signal.SIGKILL)  # its horse goes on, or the workers of its pool
                orphans.append(command)
            else:
                command.kill_session()
        for job in over(application)[0]:
            finished_at.setdefault(job, time.monotonic())
    for command in running + orphans:
        command.kill_session()

    last = start(*QUEUES).up()
    jobs = enqueuer.retries.keys()
    wait_until(lambda: set().union(*over(application)) >= jobs, "all is over")
    wait_until(lambda: application.workers() == {last.worker}, "the dead are forgotten")
    last.stop()
    finished, failed = over(application)
    assert finished & failed == set()
    assert {job: application.status(job) for job in jobs} == {
        job: "finished" if job in finished else "failed" for job in jobs
    }
    assert [application.queue(name).job_ids for name in QUEUES] == [[], []]
    assert application.traces() == []
    starts = Counter(run.token for run in watch.of("start"))
    assert {job for job in jobs if starts[job] > 1 + enqueuer.retries[job]} == set()
    assert finished - {run.token for run in watch.of("end")} == set()
    again = {run.token for run in watch.of("start") if run.at > finished_at.get(run.token, run.at)}
    assert again == set(), "had finished"
    print(f"{len(jobs)} jobs, {len(finished)} finished, {sum(starts.values())} starts")
