"""Commands that change jobs and queues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue, Store
from equeue_core.cli._errors import Code
from tests.cli.conftest import Run

Shown = Callable[..., Any]


def counts(path: Path, name: str = "mail") -> dict[str, int]:
    with Store(path) as store:
        return store.stats()[name]


def test_put(store: Path, equeue: Run, shown: Shown) -> None:
    assert equeue("put", store, "mail", '{"to": ["x"]}').stdout == "7\n"
    assert shown("put", store, "mail", "null") == {"id": "8"}
    assert equeue("put", store, "mail", "-", stdin='"from a pipe"\n').stdout == "9\n"
    assert equeue("put", store, "mail", "plain", "--text").stdout == "10\n"
    found = [shown("show", store, "mail", number)["payload"] for number in (7, 8, 9, 10)]
    assert found == [{"to": ["x"]}, None, "from a pipe", "plain"]


def test_the_options_of_put(store: Path, equeue: Run, shown: Shown) -> None:
    equeue(
        *("put", store, "mail", "1", "--priority", -2, "--delay", 50, "--expires-in", 60),
        *("--unique", "key", "--max-retries", 0),
    )
    job = shown("show", store, "mail", 7)
    assert (job["state"], job["priority"], job["unique"], job["max_retries"]) == (
        "scheduled",
        -2,
        "key",
        0,
    )
    assert job["expires_at"] - job["due_at"] == pytest.approx(10)
    assert (
        "unique" in equeue("put", store, "mail", "2", "--unique", "key", code=Code.REFUSED).stderr
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["{no json"],
        ["1", "--delay", "-1"],
        ["1", "--priority", "nan"],
        ["1", "--max-retries", "x"],
        [],
    ],
)
def test_what_cannot_be_put(arguments: list[str], store: Path, equeue: Run) -> None:
    assert equeue("put", store, "mail", *arguments, code=Code.USAGE).stderr
    assert counts(store)["total"] == 6


@pytest.mark.contract("CLI-02")
def test_put_makes_a_store_and_a_queue_only_if_told(store_path: Path, equeue: Run) -> None:
    missing = equeue("put", store_path, "mail", "1", code=Code.NOT_FOUND).stderr
    assert "no store" in missing
    assert "--create" in missing
    assert not store_path.exists()
    equeue("put", store_path, "mail", "1", "--create")
    assert "--create" in equeue("put", store_path, "other", "1", code=Code.NOT_FOUND).stderr
    equeue("put", store_path, "other", "1", "--create")
    equeue("put", store_path, "other", "1", "--create")
    assert (counts(store_path)["total"], counts(store_path, "other")["total"]) == (1, 2)


def test_requeue_one(store: Path, equeue: Run) -> None:
    equeue("requeue", store, "mail", 1)
    assert (counts(store)["failed"], counts(store)["pending"]) == (0, 3)
    assert "only ended jobs" in equeue("requeue", store, "mail", 1, code=Code.REFUSED).stderr


@pytest.mark.contract("CLI-04")
def test_requeue_all_failed(store: Path, equeue: Run) -> None:
    assert "--yes" in equeue("requeue", store, "mail", "--all-failed", code=Code.REFUSED).stderr
    assert counts(store)["failed"] == 1
    assert "Requeued 1" in equeue("requeue", store, "mail", "--all-failed", "--yes").stderr
    assert counts(store)["failed"] == 0


@pytest.mark.parametrize("arguments", [[], ["1", "--all-failed"]])
def test_requeue_wants_one_of_two(arguments: list[str], store: Path, equeue: Run) -> None:
    equeue("requeue", store, "mail", *arguments, code=Code.USAGE)


def test_cancel(store: Path, equeue: Run) -> None:
    equeue("cancel", store, "mail", 4, code=Code.REFUSED)
    equeue("cancel", store, "mail", 4, "-y")
    assert counts(store)["cancelled"] == 2
    assert "only pending" in equeue("cancel", store, "mail", 1, "-y", code=Code.REFUSED).stderr


@pytest.mark.contract("CLI-04")
def test_purge(store: Path, equeue: Run) -> None:
    equeue("purge", store, "mail", "--state", "pending", code=Code.REFUSED)
    assert counts(store)["pending"] == 2
    assert "Removed 2" in equeue("purge", store, "mail", "--state", "pending", "--yes").stderr
    assert counts(store)["pending"] == 0
    equeue("purge", store, "mail", "--state", "pending")  # nothing is destroyed, nobody is asked
    equeue("purge", store, "mail", "--state", "running", "--yes", code=Code.USAGE)
    equeue("purge", store, "mail", "--state", "deferred", "--yes", code=Code.USAGE)
    equeue("purge", store, "mail", code=Code.USAGE)


def test_pause_and_resume(store: Path, equeue: Run) -> None:
    with Queue(store, "mail") as queue:
        equeue("pause", store, "mail")
        assert queue.paused
        equeue("resume", store, "mail")
        assert not queue.paused


@pytest.mark.parametrize("name", ["", "\udcff", "x" * 70_000])
def test_what_cannot_name_a_queue(name: str, store: Path, equeue: Run) -> None:
    equeue("put", store, name, "1", "--create", code=Code.USAGE)
    equeue("pause", store, name, code=Code.NOT_FOUND)


def test_what_cannot_be_a_store(equeue: Run, tmp_path: Path) -> None:
    assert "directory" in equeue("put", "lmdb:///x", "q", "1", "--create", code=Code.USAGE).stderr
    (tmp_path / "file").write_text("")
    equeue("put", tmp_path / "file", "q", "1", "--create", code=Code.UNUSABLE)


@pytest.mark.parametrize("payload", ["1" * 30, '"\\ud800"', "[" * 100_000])
def test_json_that_cannot_be_stored(payload: str, store: Path, equeue: Run) -> None:
    equeue("put", store, "mail", "-", stdin=payload, code=Code.USAGE)
