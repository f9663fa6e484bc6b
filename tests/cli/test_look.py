"""Commands that look."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue, Store
from equeue_core.cli._errors import Code
from tests.cli.conftest import KILLED, Run

LOOKING = ["stats", "queues", "workers", "check"]

Shown = Callable[..., Any]


def content(path: Path) -> dict[str, str]:
    """A checksum of each file of a store that holds data."""
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in path.iterdir()
        if each.is_file() and each.name in ("data.mdb", "lock")
    }


def test_stats_counts_jobs_by_state(store: Path, shown: Shown, equeue: Run) -> None:
    (queue,) = shown("stats", store)["queues"]
    assert queue["name"] == "mail"
    assert queue["kind"] == "core"
    assert queue["ever_put"] == 6
    assert queue["counts"] == {
        "pending": 2,
        "scheduled": 1,
        "running": 0,
        "done": 1,
        "failed": 1,
        "cancelled": 1,
    }
    header, row = equeue("stats", store).stdout.splitlines()
    assert header.split()[:3] == ["pending", "scheduled", "running"]
    assert row.split() == ["2", "1", "0", "1", "1", "1", "6", "mail"]


def test_queues_says_what_is_left(store: Path, shown: Shown, equeue: Run) -> None:
    Store(store).queue("mail").pause()
    (queue,) = shown("queues", store)
    assert (queue["unfinished"], queue["paused"]) == (3, True)
    assert equeue("queues", store).stdout.splitlines()[1].split() == [
        "core",
        "3",
        "1",
        "yes",
        "mail",
    ]


def test_a_store_without_queues(store_path: Path, equeue: Run, shown: Shown) -> None:
    with Store(store_path) as store:
        assert store.queues() == []
    assert "no queues yet" in equeue("queues", store_path).stderr
    assert shown("queues", store_path) == []


def test_jobs_lists_a_page(store: Path, shown: Shown, equeue: Run) -> None:
    assert [each["id"] for each in shown("jobs", store, "mail")] == ["4", "5", "6", "2", "1", "3"]
    assert [each["id"] for each in shown("jobs", store, "mail", "--limit", 2)] == ["4", "5"]
    (failed,) = shown("jobs", store, "mail", "--state", "failed")
    assert failed["errors"][0]["message"] == "ValueError: no such mailbox"
    assert "no such mailbox" in equeue("jobs", store, "mail", "--state", "failed").stdout
    assert "no such jobs" in equeue("jobs", store, "mail", "--state", "running").stderr


def test_jobs_lists_more_than_one_transaction_has(store_path: Path, shown: Shown) -> None:
    with Queue(store_path) as queue:
        queue.put_many(range(1200))
    listed = shown("jobs", store_path, "default", "--limit", 1100)
    assert [each["payload"] for each in listed] == list(range(1100))


def test_a_state_of_another_kind_of_queue(store: Path, equeue: Run) -> None:
    assert (
        "no state" in equeue("jobs", store, "mail", "--state", "deferred", code=Code.USAGE).stderr
    )


def test_show_has_everything(store: Path, shown: Shown, equeue: Run) -> None:
    failed = shown("show", store, "mail", 1)
    assert failed["payload"] == {"to": "1@example.org"}
    assert (failed["state"], failed["attempts"]) == ("failed", 1)
    assert failed["finished_at"] >= failed["enqueued_at"]
    assert "ValueError" in failed["errors"][0]["traceback"]
    assert shown("show", store, "mail", 2)["result"] == "sent"
    scheduled = shown("show", store, "mail", 6)
    assert (scheduled["priority"], scheduled["unique"], scheduled["max_retries"]) == (2, "one", 7)
    text = equeue("show", store, "mail", 1).stdout
    assert "1@example.org" in text
    assert "attempt 1" in text


def test_show_and_workers_say_who_has_a_job(store: Path, shown: Shown, equeue: Run) -> None:
    with Store(store) as opened:
        record = opened.queue("mail").get(timeout=0)
        running = shown("show", store, "mail", record.job_id)
        (worker,) = shown("workers", store)
        assert (running["state"], worker["name"]) == ("running", f"owner {running['owner']}")
        assert (worker["pid"], worker["holds"]) == (os.getpid(), [f"mail {record.job_id}"])
        assert worker["since"] <= running["claimed_at"]
        assert str(os.getpid()) in equeue("workers", store).stdout
        record.ack()
    assert shown("workers", store) == []


@pytest.mark.contract("CLI-06")
def test_payloads_that_are_no_plain_data(store_path: Path, shown: Shown, equeue: Run) -> None:
    with Queue(store_path) as queue:
        queue.put(b"\xff\x00")
        queue.put({1: float("nan"), (2, 3): b"text"})
        queue.put("a\x1b[31mb\n\u202ec")
    found = [each["payload"] for each in shown("jobs", store_path, "default")]
    assert found == [{"base64": "/wA="}, {"1": "nan", "[2, 3]": "text"}, "a\x1b[31mb\n\u202ec"]
    for number in (1, 2, 3):
        equeue("show", store_path, "default", number)
    for output in (
        equeue("jobs", store_path, "default").stdout,
        equeue("show", store_path, "default", 3).stdout,
        equeue("show", store_path, "default", 3, "--json").stdout,
    ):
        assert "\x1b" not in output
        assert "\u202e" not in output
        assert "[31mb" in output


@pytest.mark.contract("CLI-06")
def test_names_and_errors_are_made_harmless(store_path: Path, equeue: Run) -> None:
    with Store(store_path) as store:
        queue = store.queue("red\x1b[31m")
        queue.put(1)
        queue.get(timeout=0).fail("bell\x07")
    assert "red\\x1b[31m" in equeue("stats", store_path).stdout
    assert "bell\\x07" in equeue("jobs", store_path, "red\x1b[31m").stdout
    missing = equeue("jobs", store_path, "blue\x1b[34m", code=Code.NOT_FOUND).stderr
    assert "\x1b" not in missing


@pytest.mark.contract("CLI-02")
@pytest.mark.parametrize("command", [*LOOKING, "doctor"])
def test_a_wrong_path_makes_no_store(command: str, tmp_path: Path, equeue: Run) -> None:
    missing = tmp_path / "typo"
    assert "no such directory" in equeue(command, missing, code=Code.NOT_FOUND).stderr
    assert not missing.exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no data.mdb" in equeue(command, empty, code=Code.NOT_FOUND).stderr
    assert list(empty.iterdir()) == []
    file = tmp_path / "file"
    file.write_text("")
    assert "not a directory" in equeue(command, file, code=Code.NOT_FOUND).stderr


@pytest.mark.contract("CLI-01")
@pytest.mark.parametrize("command", [*LOOKING, "doctor", "jobs"])
def test_looking_changes_nothing(command: str, store: Path, equeue: Run) -> None:
    """Not even what a worker would do first: give back the jobs of one that was killed."""
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    before = content(store)
    code = Code.PROBLEMS if command == "doctor" else 0
    equeue(command, store, *(["mail"] if command == "jobs" else []), code=code)
    assert content(store) == before


@pytest.mark.contract("CLI-02")
@pytest.mark.parametrize("command", ["jobs", "pause", "resume", "show"])
def test_a_wrong_name_makes_no_queue(command: str, store: Path, equeue: Run) -> None:
    more = ["1"] if command == "show" else []
    output = equeue(command, store, "mial", *more, code=Code.NOT_FOUND).stderr
    assert "'mail'" in output
    assert Store(store).queues() == ["mail"]


@pytest.mark.parametrize("job_id", ["99", "-1", "x", "\u0663", "9" * 30, "9" * 5000])
def test_a_wrong_id(job_id: str, store: Path, equeue: Run) -> None:
    output = equeue("show", store, "mail", "--", job_id, code=Code.NOT_FOUND).stderr
    assert ("are numbers" in output) is (job_id != "99")


def test_deep_payloads(store_path: Path, equeue: Run, shown: Shown) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    with Queue(store_path) as queue:
        queue.put(deep)
    equeue("jobs", store_path, "default")
    assert "..." in equeue("show", store_path, "default", 1).stdout
    assert "..." in equeue("show", store_path, "default", 1, "--json").stdout


@pytest.mark.contract("CLI-01")
def test_a_look_takes_no_lock_for_writing(
    store: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(store) as opened:
        opened.queue("mail").put("so that it is open")

        def refuse(*arguments: Any, **options: Any) -> None:
            raise AssertionError("a look that writes")

        monkeypatch.setattr(opened._environment, "write", refuse)
        for command in LOOKING:
            equeue(command, store)
        equeue("jobs", store, "mail")
        equeue("show", store, "mail", 1)


def test_an_empty_path(store: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    assert "empty" in equeue("stats", "", code=Code.USAGE).stderr
    equeue("stats", ".")


def test_a_table_is_aligned(store_path: Path, equeue: Run) -> None:
    with Queue(store_path, "\u4e2d\u6587") as queue:
        queue.put(1)
    with Queue(store_path, "b") as queue:
        queue.put_many(range(1000))
    header, first, second = equeue("queues", store_path).stdout.splitlines()
    assert header == "kind  unfinished  failed  queue"
    assert first == "core           1       0  \u4e2d\u6587"
    assert second == "core        1000       0  b"
