"""Packages around Dramatiq, unmodified, with the adapter's backends: their commands, real processes."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from dramatiq import Message

from equeue_dramatiq import LMDBBroker
from tests.dramatiq import _commands
from tests.dramatiq._commands import running, wait_for_lines, wait_until

pytestmark = pytest.mark.once

WATCHDOG = int(_commands.WATCHDOG * 1000)
WORKER = ("--processes", "1", "--threads", "2")
DJANGO = {"DJANGO_SETTINGS_MODULE": "settings"}


@pytest.fixture
def broker(store_path: Path) -> LMDBBroker:
    """A producer's, on the store that the projects use."""
    return LMDBBroker(store_path)


def message(name: str, *args: object) -> Message[None]:
    return Message(queue_name="default", actor_name=name, args=args, kwargs={}, options={})


def run(directory: Path, *command: str, **extra: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        _commands.installed(*command),
        cwd=directory,
        env=_commands.environment(directory, **extra),
        capture_output=True,
        text=True,
        timeout=_commands.WATCHDOG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_periodiq_sends_what_is_due(tmp_path: Path) -> None:
    with running(tmp_path, "dramatiq", "periodic", *WORKER):
        # Its loop waits for the next minute, deaf to SIGTERM.
        with running(tmp_path, "periodiq", "periodic") as scheduler:
            (line, *_) = wait_for_lines(tmp_path, 1)
            scheduler.kill()
    assert re.match(r"every_minute \d{4}-\d\d-\d\d", line)


def test_prometheus_counts_messages_and_no_delayed_one_stays_in_progress(
    tmp_path: Path, broker: LMDBBroker
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    exporter = {
        "dramatiq_prom_db": str(tmp_path / "prometheus"),
        "dramatiq_prom_host": "127.0.0.1",
        "dramatiq_prom_port": str(port),
    }

    def metrics() -> dict[str, float]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
                text = answer.read().decode()
        except OSError:  # not yet
            return {}
        sample = r'^dramatiq_(\w+)\{actor_name="work",.*queue_name="default(?:\.DQ)?"\} (\S+)$'
        return {name: float(value) for name, value in re.findall(sample, text, re.MULTILINE)}

    def all_are_counted() -> bool:
        found = metrics()
        return [found.get(f"message{name}_total") for name in ("s", "_rejects", "_retries")] == [
            4,
            1,
            1,
        ]

    with running(tmp_path, "dramatiq", "measured", *WORKER, **exporter):
        broker.enqueue(message("work", True))
        broker.enqueue(message("work", True), delay=50)
        broker.enqueue(message("work", False))  # is tried twice
        wait_until(all_are_counted, "all runs are counted")
        found = metrics()
    assert found["message_errors_total"] == 2
    assert found["messages_inprogress"] == 0
    assert found["delayed_messages_inprogress"] == 0


@pytest.mark.contract("DRA-02")
def test_dramatiq_abort_interrupts_what_runs_and_skips_what_waits(
    tmp_path: Path, broker: LMDBBroker
) -> None:
    with running(tmp_path, "dramatiq", "abortable", "--processes", "1", "--threads", "1"):
        run(tmp_path, "python", "-c", "import abortable; abortable.demand()")
        broker.join("default", timeout=WATCHDOG)
    assert _commands.lines(tmp_path) == ["started first", "aborted first"]
    assert broker.get_queue_message_counts("default") == (0, 0, 1)


def test_dramatiq_workflow_runs_chains_and_groups(tmp_path: Path) -> None:
    with running(tmp_path, "dramatiq", "workflows", *WORKER):
        run(tmp_path, "python", "-c", "import workflows; workflows.start()")
        ran = wait_for_lines(tmp_path, 4)
    assert ran[0] == "first"
    assert sorted(ran[1:3]) == ["left", "right"]
    assert ran[3:] == ["last"]


def test_django_dramatiq_with_results_limits_and_task_table(tmp_path: Path) -> None:
    run(tmp_path, "django-admin", "migrate", "--verbosity", "0", **DJANGO)
    with running(tmp_path, "django-admin", "rundramatiq", *WORKER, **DJANGO):
        printed = run(tmp_path, "python", "-m", "order", **DJANGO)
    assert printed.splitlines() == ["7", "['delayed', 'done']", "False", "(0, 1, 0)"]
    assert _commands.lines(tmp_path) == ["count_orders 6"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="dramatiq-crontab needs Python 3.11")
def test_dramatiq_crontab_sends_what_is_due(tmp_path: Path, broker: LMDBBroker) -> None:
    run(tmp_path, "django-admin", "migrate", "--verbosity", "0", **DJANGO)
    with running(tmp_path, "django-admin", "crontab", "--no-heartbeat", **DJANGO):
        wait_until(
            lambda: broker.get_queue_message_counts("default")[0] > 0, "the actor is scheduled"
        )
    received = next(broker.consume("default"))
    assert received is not None
    assert received.actor_name == "tick"


def test_flask_dramatiq_forks_workers_with_the_applications_broker(tmp_path: Path) -> None:
    with running(tmp_path, "flask", "--app", "webshop", "worker", *WORKER):
        assert run(tmp_path, "python", "-c", "import webshop; webshop.shop()") == "ship\n"
        assert wait_for_lines(tmp_path, 1) == ["ship 7 webshop"]
