"""``equeue doctor``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from equeue_core import Store, queues
from equeue_core._store import _mounts
from equeue_core.cli._errors import Code
from tests.cli.conftest import KILLED, Run


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room, whatever the machine's has."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 1 << 39, 1 << 39))
    monkeypatch.setattr(_mounts, "file_system_type", lambda path: "ext4")


def lines(shown: Callable[..., Any], path: Path, code: int = 0) -> dict[str, dict[str, Any]]:
    return {each["subject"]: each for each in shown("doctor", path, code=code)}


def test_a_healthy_store(store: Path, shown: Callable[..., Any], equeue: Run) -> None:
    found = lines(shown, store)
    assert {
        "path",
        "versions",
        "format",
        "file system",
        "space",
        "size",
        "limit",
        "sync",
        "owners",
    } < set(found)
    assert all(each["ok"] for each in found.values())
    assert "dramatiq 2" in found["versions"]["found"]
    assert "1 failed jobs" in found["queue"]["found"]
    text = equeue("doctor", store).stdout
    assert "note  queue" in text
    assert "-> see why" in text


def test_live_and_dead_owners(store: Path, shown: Callable[..., Any]) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    owners = [
        each for each in shown("doctor", store, code=Code.PROBLEMS) if each["subject"] == "owners"
    ]
    assert [each["ok"] for each in owners] == [True, False]
    assert "1 died" in owners[1]["found"]
    assert "start one" in owners[1]["advice"]
    with Store(store) as opened:
        opened.queue("mail").get(timeout=0)
        assert "1 live" in lines(shown, store)["owners"]["found"]


@pytest.mark.parametrize(
    ("free", "words"), [(1 << 20, "now"), (40_000, "now"), (900 << 20, "before it is full")]
)
def test_a_disk_that_is_nearly_full(
    free: int, words: str, store: Path, shown: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, (1 << 40) - free, free))
    assert words in lines(shown, store, Code.PROBLEMS)["space"]["advice"]


@pytest.mark.parametrize("kind", ["tmpfs", "nfs4"])
def test_a_file_system_that_is_none_for_a_store(
    kind: str, store: Path, shown: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_mounts, "file_system_type", lambda path: kind)
    network = kind if kind == "nfs4" else None
    monkeypatch.setattr(_mounts, "network_file_system", lambda path: network)
    found = lines(shown, store, Code.PROBLEMS)
    subject = "opening" if kind == "nfs4" else "file system"
    assert kind in found[subject]["found"]


def test_a_mode_that_may_lose_jobs(store_path: Path, shown: Callable[..., Any]) -> None:
    with Store(store_path, sync="off") as store:
        store.queue("mail").put(1)
    assert "configure" in lines(shown, store_path, Code.PROBLEMS)["sync"]["advice"]


def test_a_paused_queue_in_which_jobs_wait(store: Path, shown: Callable[..., Any]) -> None:
    Store(store).queue("mail").pause()
    found = [each["found"] for each in shown("doctor", store)]
    assert "mail is paused, and 2 jobs wait" in found


def test_an_adapter_that_is_not_installed(
    store: Path, shown: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "sources", lambda: ([], {"rq": "No module named 'rq'"}))
    found = [each for each in shown("doctor", store) if each["subject"] == "versions"]
    assert found[1]["advice"].endswith("with its extra: rq")
