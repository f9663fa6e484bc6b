"""Commands that are stopped or reloaded: what runs ends, what does not goes elsewhere at once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .._procs import wait_until
from .._watch import Gate
from ._application import Application
from ._commands import Starter, Watch

pytestmark = pytest.mark.once

QUICK = {"dramatiq_worker_timeout": "100"}
"""Milliseconds after which idle threads of a worker see that it stops."""

PROMPT = 2.0
"""Seconds that a busy machine may add to what is to happen at once."""


@pytest.mark.contract("DRW-05", "DRM-06")
@pytest.mark.parametrize("program", ["dramatiq", "dramatiq-gevent"])
def test_running_messages_end_and_unstarted_ones_go_elsewhere_at_once(
    application: Application, watch: Watch, gate: Gate, start: Starter, program: str
) -> None:
    # A thread is held, nine messages wait in the worker's memory: as many as it was told to fetch.
    first = start(1, 1, program=program, environment={**QUICK, "dramatiq_queue_prefetch": "10"})
    first.workers()
    application.send("hold", "long")
    watch.wait("start", "long")
    unstarted = [f"{number}" for number in range(9)]
    application.broker.enqueue_many([application.message("mark", each) for each in unstarted])
    wait_until(lambda: application.broker.stats("default")["running"] == 10, "they are fetched")
    second = start(1, 1)
    second.workers()

    first.signal(signal.SIGTERM)
    (stopping,) = watch.wait("stopping", command=first.name)
    starts = watch.wait("start", count=10)[1:]
    assert watch.of("held") == [], "the first is still at work"
    delay = max(event.at for event in starts) - stopping.at
    print(f"{program}: elsewhere {delay * 1000:.1f} ms after the worker began to stop")
    assert delay < PROMPT
    assert [event.token for event in starts] == unstarted, "in their order"
    assert {event.pid for event in starts} == set(second.workers())
    assert [event.retries for event in starts] == [0] * 9

    gate.open()
    assert first.ended() == 0
    application.join()
    watch.check(["long", *unstarted])
    assert watch.of("acked", "long")[0].pid == watch.of("start", "long")[0].pid


@pytest.mark.contract("DRW-04")
def test_what_two_queues_brought_for_one_thread_does_not_wait_for_it(
    application: Application, watch: Watch, gate: Gate, other_gate: Gate, start: Starter
) -> None:
    first = start(1, 1)
    (worker,) = first.workers()
    application.broker.enqueue_many(
        [application.message("hold", "long"), application.message("hold_in_other", "another")]
    )
    second = start(1, 1)
    starts = watch.wait("start", count=2)
    assert {event.pid for event in starts} == {worker, *second.workers()}
    assert [event.retries for event in starts] == [0, 0]
    gate.open()
    other_gate.open()
    application.join()
    watch.check(["long", "another"])


@pytest.mark.contract("DRW-05")
def test_nothing_is_begun_in_a_worker_that_stops(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    first = start(1, 2, environment=QUICK)
    first.workers()
    application.send("hold", "long")
    watch.wait("start", "long")
    first.signal(signal.SIGTERM)
    watch.wait("stopping", command=first.name)
    application.send("mark", "for-others")
    second = start(1, 1)
    (event,) = watch.wait("start", "for-others")
    assert event.pid in second.workers()
    gate.open()
    assert first.ended() == 0
    application.join()
    watch.check(["long", "for-others"])


@pytest.mark.contract("DRW-02", "DRW-06")
def test_a_message_that_outlasts_the_shutdown_stays_where_it_is_as_long_as_its_process_lives(
    application: Application, watch: Watch, gate: Gate, other_gate: Gate, start: Starter
) -> None:
    """Dramatiq gives up waiting and closes the broker, but the thread works on until the process ends."""
    first = start(1, 2, "--worker-shutdown-timeout", "300", environment=QUICK)
    first.workers()
    application.send("lingers", "lingering")
    application.send("hold", "long")
    watch.wait("acked", "lingering")
    watch.wait("start", "long")
    first.signal(signal.SIGTERM)
    wait_until(lambda: "Worker has been shut down" in first.log(), "it is shut down")
    start(1, 1).workers()
    application.send("mark", "meanwhile")
    watch.wait("acked", "meanwhile")
    gate.open()
    watch.wait("acked", "long")
    assert len(watch.of("start", "long")) == 1
    other_gate.open()
    assert first.ended() == 0
    application.join()
    watch.check(["lingering", "long", "meanwhile"])


@pytest.mark.contract("DRW-06")
def test_reload(application: Application, watch: Watch, gate: Gate, start: Starter) -> None:
    command = start(2, 1, environment=QUICK)
    old = set(command.workers())
    application.send("hold", "long")
    watch.wait("start", "long")
    command.signal(signal.SIGHUP)
    watch.wait("stopping")
    application.send("mark", "meanwhile")
    gate.open()
    new = set(command.workers(generation=2))
    assert not new & old
    application.send("mark", "afterwards")
    application.join()
    watch.check(["long", "meanwhile", "afterwards"])
    assert watch.of("start", "afterwards")[0].pid in new


def test_reload_when_a_source_file_changes(
    application: Application, watch: Watch, start: Starter, tmp_path: Path
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    command = start(1, 1, "--use-spawn", "--watch", str(sources), environment=QUICK)
    old = command.workers()
    (sources / "changed.py").write_text("")
    new = command.workers(generation=2)
    assert new != old
    application.send("mark", "afterwards")
    application.join()
    watch.check(["afterwards"])
    assert watch.of("start", "afterwards")[0].pid in new


@pytest.mark.contract("DRW-06")
@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.torture)])
def test_rolling_restarts_under_load(
    application: Application, watch: Watch, start: Starter, rounds: int
) -> None:
    """One command takes over from the other, again and again: each message is run exactly once."""
    sent = []
    command = start(2, 3, environment=QUICK)
    for number in range(rounds):
        command.workers()
        for count in range(200):
            sent.append(f"{number}-{count}")
            application.send("mark", sent[-1], delay=[None, 20][count % 2])
        following = start(2, 3, environment=QUICK)
        command.signal([signal.SIGTERM, signal.SIGINT][number % 2])
        assert command.ended() == 0
        command = following
    application.join()
    watch.check(sent)
    assert {event.retries for event in watch.of("start")} == {0}
    assert application.broker.stats("default")["failed"] == 0
