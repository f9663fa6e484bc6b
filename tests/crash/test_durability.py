"""What each `sync` mode promises, proved by the system calls that it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue, Store, StoreOptionError

from . import _durability, _strace
from ._procs import Child

Spawn = Callable[..., Child]

#: flushes in the modes full, normal, off
ADDS = {"full": 2, "normal": 1, "off": 0}
CHANGES = {"full": 1, "normal": 1, "off": 0}
NOTHING = {"full": 0, "normal": 0, "off": 0}
TABLE = {
    "put": ADDS,
    "put_many": ADDS,
    "delayed put": ADDS,
    "transaction": ADDS,
    "get": CHANGES,
    "get again": CHANGES,
    "get a third time": CHANGES,
    "get_many": CHANGES,
    "nack": CHANGES,
    "release": CHANGES,
    "ack": CHANGES,
    "ack_many": CHANGES,
    "cancel": CHANGES,
    "empty get": NOTHING,
    "refused put": NOTHING,
    "put refused for its payload": NOTHING,
    "put into a full store": NOTHING,
    "look": NOTHING,
    "entry": ADDS,
    "entry removed": CHANGES,
    "what adds nothing": NOTHING,
}


def traced(
    path: Path, spawn: Spawn, sync: str, program: Callable[..., None], *args: object
) -> list[_strace.Call]:
    """Run a program on a new store in this mode and return its system calls."""
    _strace.require()
    with Queue(path, sync=sync) as queue:
        queue.stats()
    record = path.with_name("trace")
    child = spawn(
        program, path, path.with_name(_strace.MARKS), *args, prefix=_strace.command(record)
    )
    child.finish()
    return _strace.read(record)


@pytest.mark.parametrize("sync", ["full", "normal", "off"])
def test_flushes_of_each_verb(path: Path, spawn: Spawn, sync: str) -> None:
    counts = _strace.flushes(traced(path, spawn, sync, _durability.each_verb))
    expected = {
        f"{verb} {turn}": modes[sync]
        for verb, modes in TABLE.items()
        for turn in range(_durability.ROUNDS)
    }
    assert {mark: counts[mark] for mark in expected} == expected


def test_threads_share_their_flushes(path: Path, spawn: Spawn) -> None:
    counts = _strace.flushes(traced(path, spawn, "full", _durability.many_threads))
    assert 2 <= counts["puts"] < 2 * 200


@pytest.mark.parametrize(
    ("made", "asked"), [("full", "off"), ("full", "normal"), ("normal", True), ("off", "full")]
)
def test_another_mode_than_the_stores_own_is_refused(
    path: Path, made: str, asked: str | bool
) -> None:
    with Queue(path, sync=made) as queue:
        queue.put("work")
    with Store(path, sync=asked) as store:
        with pytest.raises(StoreOptionError, match="configure") as caught:
            store.queue().get_nowait()
    assert made in str(caught.value)
    assert isinstance(caught.value, ValueError)

    with Store(path) as store:
        store.configure(sync=asked)
    with Store(path, sync=asked) as store:
        assert store.queue().get_nowait().payload == "work"


def test_the_same_mode_by_its_other_name(path: Path) -> None:
    with Queue(path, sync=True) as queue:
        queue.put("work")
    with Queue(path, sync="full") as queue:
        assert queue.qsize() == 1
        assert queue.store.sync == "full"
    with Queue(path) as queue:
        assert queue.qsize() == 1


def test_full_is_the_mode_of_a_new_store(path: Path) -> None:
    with Queue(path) as queue:
        queue.put("work")
        assert queue.store.sync == "full"
    with pytest.raises(StoreOptionError), Queue(path, sync="off") as other:
        other.stats()
