"""Containers that share a volume: process ids mean nothing there, each first process is 1."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue

from ._ledger import assert_sound
from ._remote import Remote

Starter = Callable[..., Remote]
_NAMESPACES = ("--pid", "--mount", "--fork", "--mount-proc", "--kill-child")
_WAYS = (("unshare", *_NAMESPACES), ("unshare", "--user", "--map-root-user", *_NAMESPACES))


def _permitted(command: tuple[str, ...]) -> bool:
    return not subprocess.run([*command, "true"], capture_output=True, check=False).returncode


@pytest.fixture(scope="module")
def container() -> tuple[str, ...]:
    """The command that runs a program as process 1 of a namespace of its own."""
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare(1) here")
    for way in _WAYS:
        if _permitted(way):
            return way
    pytest.skip("the kernel lets this user make no pid namespaces")


def test_two_containers_exchange_jobs(
    path: Path, remote: Starter, container: tuple[str, ...]
) -> None:
    one, two = remote(prefix=container), remote(prefix=container)
    assert one.inner_pid == two.inner_pid == 1

    asked = one.call("put", "question")
    assert two.call("get", 30)["id"] == asked
    answered = two.call("put", "answer")
    assert one.call("get", 30)["id"] == answered
    assert two.call("recover") == one.call("recover") == 0
    two.call("complete", "ack", asked)
    one.call("complete", "ack", answered)

    assert one.call("stats") == two.call("stats")
    with Queue(path) as queue:
        assert queue.stats()["done"] == 2
        assert_sound(queue.store)


def test_a_put_wakes_a_consumer_in_another_container(
    remote: Starter, container: tuple[str, ...]
) -> None:
    one, two = remote(prefix=container), remote(prefix=container)
    two.send_and_sleep("get", 30)
    job_id = one.call("put", "wake up")
    assert two.reply()["id"] == job_id
    assert two.at - one.at < 0.5


@pytest.mark.parametrize("trials", [3, pytest.param(60, marks=pytest.mark.torture)])
def test_each_notices_the_others_death(
    path: Path, remote: Starter, container: tuple[str, ...], trials: int
) -> None:
    idle = remote(prefix=container)
    with Queue(path, sync="off") as queue:
        for _ in range(trials):
            other = remote(prefix=container)
            job_id = queue.put("work")
            assert other.call("get", 30)["id"] == job_id
            idle.send_and_sleep("get", 30)
            killed_at = other.kill()
            assert idle.reply()["attempt"] == 2
            assert idle.at - killed_at < 3
            idle.call("complete", "ack", job_id)
        assert_sound(queue.store)


def test_a_living_container_keeps_its_job(
    path: Path, remote: Starter, container: tuple[str, ...]
) -> None:
    one, two = remote(prefix=container), remote(prefix=container)
    with Queue(path) as queue:
        job_id = queue.put("work")
        one.call("get", 30)
        # Another process number 1 comes, works, and goes.
        other_id = queue.put("other")
        two.call("get", 30)
        two.kill()
        two.child.wait()
        assert queue.recover() == 1
        assert queue.job(job_id).state.value == "running"
        assert queue.job(other_id).state.value == "pending"
        one.call("complete", "ack", job_id)


def test_containers_that_mount_the_store_at_different_places(
    path: Path, tmp_path: Path, remote: Starter, container: tuple[str, ...]
) -> None:
    path.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bind = f'mount --bind "{path}" "{elsewhere}" && exec "$@"'
    one = remote(prefix=container)
    two = remote(prefix=(*container, "sh", "-c", bind, "sh"), at=elsewhere)
    two.send_and_sleep("get", 30)
    job_id = one.call("put", "work")
    assert two.reply()["id"] == job_id
    two.call("complete", "ack", job_id)
    assert one.call("stats")["done"] == 1
    assert list(elsewhere.iterdir()) == [], "the mount was private to its container"
