"""Packages around RQ, unmodified, on a store: their commands, pages and schedulers."""

from __future__ import annotations

import functools
import importlib
import re
import socket
import subprocess
import sys
import tempfile
import urllib.request
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask, current_app
from rq.job import JobStatus

from equeue_rq import Queue, SimpleWorker, Worker
from tests.contract.helpers import WATCHDOG
from tests.dramatiq._commands import lines, wait_for_lines, wait_until
from tests.rq._commands import run, running

pytestmark = pytest.mark.once

DJANGO = {"DJANGO_SETTINGS_MODULE": "settings"}
REGISTRIES = ["queued", "started", "failed", "deferred", "finished", "canceled", "scheduled"]

# rq-exporter 3.1, the newest, asks for RQ below 3 and redis-py below 6.
EXPORTER = ["rq-exporter==3.1.0", "rq==2.12.0", "redis==5.3.1"]


class TestDjango:
    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        run(tmp_path, "django-admin", "migrate", "--verbosity", "0", **DJANGO)

    @pytest.mark.parametrize("settings", ["settings", "settings_pool"])
    def test_queues_workers_and_the_admin_pages(self, tmp_path: Path, settings: str) -> None:
        printed = run(tmp_path, "python", "-m", "order", DJANGO_SETTINGS_MODULE=settings)
        assert printed.splitlines() == [
            "in a transaction 0",
            "after it 1",
            "worked 0 failed 1",
            "requeued queued 1",
            "deleted and emptied 0 0",
            "statistics [('default', 1), ('high', 0)]",
            """metrics ['rq_jobs{queue="default",status="finished"} 1.0']""",
        ]
        assert lines(tmp_path) == ["ship 7"]

    def test_commands(self, tmp_path: Path) -> None:
        run(tmp_path, "django-admin", "rqenqueue", "shop.tasks.ship", "5", **DJANGO)
        run(tmp_path, "django-admin", "rqsuspend", **DJANGO)
        run(tmp_path, "django-admin", "rqresume", **DJANGO)
        pool = ("rqworker-pool", "default", "--burst", "--num-workers", "2")
        run(tmp_path, "django-admin", *pool, **DJANGO)
        assert lines(tmp_path) == ["ship 5"]
        table = run(tmp_path, "django-admin", "rqstats", **DJANGO)
        assert re.search(r"\| default +\| +0 \| +0 \| +0 \| +1 \|", table)

    def test_cron_enqueues_what_is_due_and_has_pages(self, tmp_path: Path) -> None:
        with running(tmp_path, "django-admin", "rqcron", "timetable", **DJANGO):
            with running(tmp_path, "django-admin", "rqworker", **DJANGO):
                assert wait_for_lines(tmp_path, 2) == ["ship 1"] * 2
            printed = run(tmp_path, "python", "-m", "cron_pages", **DJANGO)
        assert printed.splitlines() == ["True", "200 True"]

    def test_rq_schedulers_command(self, tmp_path: Path, store_path: Path) -> None:
        queue = Queue("default", connection=store_path)
        with running(tmp_path, "django-admin", "rqscheduler", "--interval", "1", **DJANGO):
            run(tmp_path, "python", "-m", "later", **DJANGO)
            wait_until(lambda: queue.count == 1, "the job is due")


def test_rq_scheduler_moves_what_is_due(tmp_path: Path) -> None:
    assert run(tmp_path, "python", "-m", "scheduling").splitlines() == [
        "scheduled 4 due 3",
        "waiting 3 scheduled 3",
        "[6, 20, 42, None]",
        "again True",
        "cancelled True",
    ]


@functools.cache
def dashboard() -> Blueprint:
    """rq-dashboard's pages, which look at the store instead of at its URL."""
    blueprint: Blueprint = importlib.import_module("rq_dashboard").blueprint

    @blueprint.before_request
    def use_the_store() -> None:
        current_app.redis_conn = current_app.config["STORE"]  # type: ignore[attr-defined]

    return blueprint


class TestDashboard:
    @pytest.fixture
    def queue(self, store_path: Path) -> Queue:
        return Queue("default", connection=store_path)

    @pytest.fixture
    def jobs(self, queue: Queue) -> dict[str, Any]:
        """By registry a job that is in it."""
        finished = queue.enqueue("operator.mul", 2, 3)
        failed = queue.enqueue("operator.mul")
        worker = SimpleWorker([queue], connection=queue.connection, name="worker")
        worker.work(burst=True, logging_level="CRITICAL")
        started = queue.enqueue("operator.mul", 4, 5)
        deferred = queue.enqueue("operator.mul", 6, 7, depends_on=started)
        canceled = queue.enqueue("operator.mul", 8, 9)
        canceled.cancel()
        worker.register_birth()
        (job, _) = Queue.dequeue_any([queue], None, connection=queue.connection) or (None, None)
        assert job == started
        worker.prepare_execution(started)
        worker.prepare_job_execution(started)
        return {
            "queued": queue.enqueue("operator.mul", 10, 11),
            "started": started,
            "failed": failed,
            "deferred": deferred,
            "finished": finished,
            "canceled": canceled,
            "scheduled": queue.enqueue_in(timedelta(hours=1), "operator.mul", 12, 13),
        }

    @pytest.fixture
    def client(self, queue: Queue) -> Any:
        """Of an application with the dashboard."""
        app = Flask("dashboard")
        app.config["RQ_DASHBOARD_REDIS_URL"] = ["redis://store"]
        app.config["STORE"] = app.redis_conn = queue.connection  # type: ignore[attr-defined]
        app.register_blueprint(dashboard(), url_prefix="/rq")
        return app.test_client()

    def test_the_pages(self, client: Any, jobs: dict[str, Any]) -> None:
        pages = ["/rq/", "/rq/0/view/workers", "/rq/0/view/jobs"]
        pages += [f"/rq/0/view/jobs/default/{registry}/8/asc/1" for registry in REGISTRIES]
        pages += [f"/rq/0/view/job/{job.id}" for job in jobs.values()]
        for page in pages:
            answer = client.get(page)
            assert (answer.status_code, "RQ" in answer.text) == (200, True), page

    def test_the_data(self, client: Any, jobs: dict[str, Any]) -> None:
        (queue,) = client.get("/rq/0/data/queues.json").json["queues"]
        counts = [queue[f"{registry}_job_registry_count"] for registry in REGISTRIES[1:]]
        assert (queue["name"], queue["count"], counts) == ("default", 1, [1] * 6)
        for registry, job in jobs.items():
            for order in ("asc", "dsc"):
                url = f"/rq/0/data/jobs/default/{registry}/8/{order}/1.json"
                assert [each["id"] for each in client.get(url).json["jobs"]] == [job.id], url
        (worker,) = client.get("/rq/0/data/workers.json").json["workers"]
        assert (worker["name"], worker["queues"]) == ("worker", ["default"])
        finished = client.get(f"/rq/0/data/job/{jobs['finished'].id}.json").json
        assert (finished["result"], finished["status"]) == (6, "finished")
        failed = client.get(f"/rq/0/data/job/{jobs['failed'].id}.json").json
        assert "TypeError" in failed["exc_info"]

    def test_the_buttons(self, client: Any, jobs: dict[str, Any], queue: Queue) -> None:
        def press(url: str) -> None:
            answer = client.post(f"/rq/{url}")
            assert (answer.status_code, answer.json["status"]) == (200, "OK"), url

        press(f"job/{jobs['failed'].id}/requeue")
        assert jobs["failed"].get_status() == JobStatus.QUEUED
        press(f"job/{jobs['failed'].id}/delete")
        assert jobs["failed"].id not in queue.job_ids
        worse = queue.enqueue("operator.mul", at_front=True)
        SimpleWorker([queue], connection=queue.connection).work(
            burst=True, logging_level="CRITICAL", max_jobs=1
        )
        press("requeue/default")
        assert worse.get_status() == JobStatus.QUEUED
        press("queue/default/compact")
        for registry in REGISTRIES:
            press(f"queue/default/{registry}/empty")
        (shown,) = client.get("/rq/0/data/queues.json").json["queues"]
        assert {name: shown[name] for name in shown if name.endswith("count") and shown[name]} == {}


@pytest.fixture(scope="module")
def packages(request: pytest.FixtureRequest) -> str:
    """A directory with the exporter and the versions of RQ and redis-py that it asks for."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    name = "-".join([*EXPORTER, python]).replace("=", "")
    cache = request.config.cache.mkdir("rq-exporter")
    directory = cache / name
    if not directory.exists():
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target"]
            subprocess.run([*command, f"{unfinished}/packages", *EXPORTER], check=True, timeout=180)
            Path(unfinished, "packages").rename(directory)
    return str(directory)


def test_rq_exporter_counts_jobs_and_workers(
    tmp_path: Path, store_path: Path, packages: str
) -> None:
    queue = Queue("default", connection=store_path)
    queue.enqueue("operator.mul", 2, 3)
    worker = Worker([queue], connection=store_path, name="worker")
    worker.register_birth()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    page = f"http://127.0.0.1:{port}/"

    def metrics() -> str:
        try:
            with urllib.request.urlopen(page, timeout=WATCHDOG) as answer:
                return str(answer.read().decode())
        except OSError:  # not yet
            return ""

    with running(
        tmp_path, "python", "-m", "exporter", packages=packages, PORT=str(port)
    ) as exporter:
        wait_until(lambda: bool(metrics()), "the exporter serves its page")
        found = metrics()
        exporter.kill()
    worker.register_death()
    assert 'rq_jobs{queue="default",status="queued"} 1.0' in found
    assert re.search(r'rq_workers\{name="worker",queues="default",state=".*"\} 1\.0', found)


def test_flask_enqueues_and_shows_results(tmp_path: Path) -> None:
    job_id = run(tmp_path, "python", "-m", "webshop").strip()
    assert run(tmp_path, "python", "-m", "webshop", job_id) == "200 queued\n"
    assert run(tmp_path, "python", "-m", "webshop", "none").startswith("404 ")
    run(tmp_path, "rq", "worker", "default", "--burst")
    assert run(tmp_path, "python", "-m", "webshop", job_id) == "200 order 7 is on its way\n"
    assert lines(tmp_path) == ["ship 7"]


class TestCommandLine:
    """RQ's own command, with the classes given by its environment variables."""

    @pytest.fixture
    def queue(self, store_path: Path) -> Queue:
        return Queue("default", connection=store_path)

    def test_enqueue_work_look_and_requeue(self, tmp_path: Path, queue: Queue) -> None:
        run(tmp_path, "rq", "enqueue", "operator.mul", ":2", ":3")
        run(tmp_path, "rq", "enqueue", "operator.mul")
        run(tmp_path, "rq", "worker", "default", "--burst")
        assert "0 executing, 1 finished, 1 failed" in run(tmp_path, "rq", "info")
        run(tmp_path, "rq", "requeue", "--all", "--queue", "default")
        assert queue.count == 1
        assert "1 jobs removed" in run(tmp_path, "rq", "empty", "default")

    def test_a_pool_and_suspended_workers(self, tmp_path: Path, queue: Queue) -> None:
        jobs = [queue.enqueue("operator.mul", 2, number) for number in range(4)]
        run(tmp_path, "rq", "suspend")
        run(tmp_path, "rq", "resume")
        run(tmp_path, "rq", "worker-pool", "default", "--num-workers", "2", "--burst")
        assert [job.return_value() for job in jobs] == [0, 2, 4, 6]

    @pytest.mark.skipif(not find_spec("rq.cron"), reason="this RQ has no cron")
    def test_cron(self, tmp_path: Path, queue: Queue) -> None:
        with running(tmp_path, "rq", "cron", "every_second"):
            wait_until(lambda: queue.count > 0, "the job is due")
