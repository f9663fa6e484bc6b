"""What an application has RQ call or read when a worker is dead, and what it may do wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from rq import Retry
from rq.job import Callback
from rq.serializers import JSONSerializer

from .._procs import wait_until
from .._watch import Gate, Watch
from ._application import JOBS, Application
from ._commands import Starter, kill_together
from .test_killed import SOME_FORKING

pytestmark = pytest.mark.once


def handler(function: str) -> tuple[str, str]:
    """The options that have a worker call an exception handler."""
    return "--exception-handler", f"{JOBS}.{function}"


@pytest.mark.parametrize(("retries", "is_late"), [(0, False), (1, True)])
def test_what_raises_keeps_no_job_from_being_handled(
    application: Application,
    watch: Watch,
    gate: Gate,
    start: Starter,
    retries: int,
    is_late: bool,
) -> None:
    """Callback and handler are called once, by a worker that is there or by one that starts later."""
    jobs = ["job-0", "job-1"]
    on_failure = application.callback("raise_on_failure")
    retry = Retry(max=retries) if retries else None
    victims = [start() for _ in jobs]
    for job in jobs:
        application.enqueue("hold", job, retry=retry, on_failure=on_failure)
    watch.wait("start", count=2)
    handlers = handler("raise_on_exception") + handler("on_exception")
    observer = None if is_late else start(*handlers).up()
    kill_together(victims)
    gate.open()
    observer = observer or start(*handlers).up()
    if retries:
        application.wait(*jobs)
    else:
        application.wait(*jobs, status="failed")
        assert "AbandonedJobError" in application.failure("job-0")
    wait_until(lambda: application.workers() == {observer.worker}, "the dead are forgotten")
    observer.stop()
    for job in jobs:
        assert len(watch.of("start", job)) == 1 + retries
        assert len(watch.of("callback", job)) == 1
        assert len(watch.of("handler", job)) == 2, "the one that raises, and the next"
    assert application.traces() == []


def test_a_callback_that_ends_its_thread_does_not_end_the_looking(
    application: Application, watch: Watch, start: Starter
) -> None:
    observer = start("other").up()
    for job in ("first", "second"):
        victim = start().up()
        application.enqueue("hold", job, on_failure=application.callback("exit_on_failure"))
        watch.wait("start", job)
        victim.kill_session()
        application.wait(job, status="failed")
    wait_until(lambda: application.workers() == {observer.worker}, "the dead are forgotten")
    observer.stop()
    assert len(watch.of("callback")) == 2
    assert application.traces() == []


def test_the_observer_cannot_import_the_function_nor_its_callback(
    application: Application,
    watch: Watch,
    gate: Gate,
    start: Starter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "for_some.py").write_text(f"from {JOBS} import hold, on_failure\n")
    observer = start("other").up()
    monkeypatch.setenv("PYTHONPATH", str(sources))
    victim = start().up()
    application.queue().enqueue(
        "for_some.hold",
        job_id="job",
        retry=Retry(max=1),
        on_failure=Callback("for_some.on_failure"),
    )
    watch.wait("start", "job")
    victim.kill_session()
    wait_until(lambda: application.queue().job_ids == ["job"], "it is retried")
    victim = start().up()
    watch.wait("start", "job", 2)
    victim.kill_session()
    application.wait("job", status="failed")
    assert "AbandonedJobError" in application.failure("job")
    wait_until(lambda: application.workers() == {observer.worker}, "the dead are forgotten")
    observer.stop()
    assert watch.of("callback") == []
    assert application.traces() == []


@pytest.mark.parametrize("worker_class", SOME_FORKING)
def test_another_serializer(
    application: Application, watch: Watch, gate: Gate, start: Starter, worker_class: str
) -> None:
    """A worker with the default one looks after the job, without reading what it cannot read."""
    json = ("--serializer", "rq.serializers.JSONSerializer")
    queue = application.queue("json", serializer=JSONSerializer)
    victim = start(*json, "json", worker_class=worker_class).up()
    meta = {"some": "data"}
    queue.enqueue(f"{JOBS}.hold", "default", job_id="job", retry=Retry(max=1), meta=meta)
    watch.wait("start", "job")
    observer = start("other").up()
    victim.kill_session()
    wait_until(lambda: queue.job_ids == ["job"], "it is retried")
    gate.open()
    assert start(*json, "--burst", "json", worker_class=worker_class).ended() == 0
    assert application.status("job") == "finished"
    job = queue.fetch_job("job")
    assert job is not None
    assert job.meta == meta
    observer.stop()
    assert [run.retries for run in watch.of("start", "job")] == [1, 0]
    assert application.traces() == []


def test_a_retry_is_more_than_one_commit(
    application: Application, watch: Watch, gate: Gate, start: Starter
) -> None:
    """RQ marks a job as scheduled first, and puts it into the registry afterwards."""
    application.enqueue("trip", "job", retry=Retry(max=1, interval=1))
    victim = start(
        worker_class=f"{JOBS.rpartition('.')[0]}._dying.Worker",
        environment={"EQUEUE_TEST_POINT": "scheduling"},
    )
    victim.ended()
    victim.kill_session()
    assert application.status("job") == "scheduled"
    assert application.queue().scheduled_job_registry.get_job_ids() == []
    application.look()
    assert application.queue().scheduled_job_registry.get_job_ids() == ["job"]
    assert application.job("job").retries_left == 0
    assert application.traces() == []
