"""The thread that looks at a store again and again."""

from __future__ import annotations

import fcntl
import gc
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import rq

from equeue_core import Queue, Store, StoreRemoved
from equeue_core import queues as views
from equeue_core._store import Environment, _files, _peek, _registry
from equeue_core.cli._errors import Code
from equeue_core.cli._watcher import Answered, Broken, Event, Refused, Seen, Trouble, Watcher
from equeue_rq import LMDBRedis
from tests.contract.helpers import WATCHDOG

E = TypeVar("E", bound=Event)

OFTEN = 0.01
NEVER = 3600.0


class Watched:
    """A watcher, and what it tells."""

    def __init__(self, path: Path, interval: float) -> None:
        self.told: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.watcher = Watcher(str(path), interval, self.told.put)
        self.watcher.start()

    def next(self, kind: type[E]) -> E:
        """The next event of this kind; those before are passed over."""
        while True:
            event = self.told.get(timeout=WATCHDOG)
            if isinstance(event, kind):
                return event
            assert not isinstance(event, Broken), event.error


@pytest.fixture
def often(store: Path) -> Iterator[Watched]:
    watched = Watched(store, OFTEN)
    yield watched
    watched.watcher.stop(WATCHDOG)


@pytest.fixture
def never(store: Path) -> Iterator[Watched]:
    watched = Watched(store, NEVER)
    yield watched
    watched.watcher.stop(WATCHDOG)


def equeue(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "equeue_core", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def remove(store: Path) -> None:
    """In one step: who opens a store makes what is missing beside its data."""
    store.rename(store.with_name("removed"))
    shutil.rmtree(store.with_name("removed"))


def test_it_looks_again_and_again(often: Watched, store: Path) -> None:
    before = often.next(Seen).look
    with Queue(store, "mail") as mail:
        mail.put("meanwhile")
    while often.next(Seen).look.total("pending") == 2:
        pass
    later = often.next(Seen).look
    assert later.at > before.at
    assert later.total("pending") == 3


def test_it_does_what_it_is_asked_to_and_looks(never: Watched) -> None:
    heard: list[int] = []
    never.watcher.ask(
        lambda store: never.watcher.view(store, "mail").requeue_failed(), heard.append
    )
    answer = never.told.get(timeout=WATCHDOG)
    assert isinstance(answer, Answered)
    assert answer.then == heard.append
    assert answer.result == 1
    seen = never.told.get(timeout=WATCHDOG)
    assert isinstance(seen, Seen)
    assert (seen.look.total("failed"), seen.look.total("pending")) == (0, 3)


def test_what_is_refused_is_told(never: Watched) -> None:
    ask = never.watcher.ask
    ask(lambda store: never.watcher.view(store, "mail").job("99"), print)
    assert "no job 99" in never.next(Refused).text
    ask(lambda store: never.watcher.view(store, "mial"), print)
    assert "'mial'" in never.next(Refused).text
    ask(lambda store: list(never.watcher.view(store, "mail").jobs("deferred", 1)), print)
    assert "no state" in never.next(Refused).text
    assert never.next(Seen).look.total("pending") == 2


def test_an_error_that_nobody_has_foreseen_is_not_lost(never: Watched) -> None:
    never.watcher.ask(lambda store: 1 / 0, print)
    event = never.told.get(timeout=WATCHDOG)
    assert isinstance(event, Broken)
    assert isinstance(event.error, ZeroDivisionError)


@pytest.mark.contract("CLI-11")
def test_a_store_that_is_removed(often: Watched, store: Path) -> None:
    often.next(Seen)
    remove(store)
    first, second = often.next(Trouble), often.next(Trouble)
    # It may have been seen on its way.
    assert first.code in (Code.NOT_FOUND, Code.UNUSABLE)
    assert (first.lasting, second.lasting) == (False, True)
    third = often.next(Trouble)
    assert (third.code, third.lasting) == (Code.NOT_FOUND, True)
    assert "no such directory" in third.text
    assert not store.exists()


@pytest.mark.contract("CLI-11")
def test_a_store_that_comes_back(often: Watched, store: Path) -> None:
    often.next(Seen)
    aside = store.with_name("aside")
    store.rename(aside)
    often.next(Trouble)
    aside.rename(store)
    often.next(Seen)
    store.rename(aside)
    assert not often.next(Trouble).lasting, "it is not as it was at the look before"


@pytest.mark.contract("CLI-11")
def test_a_busy_store_is_waited_for(often: Watched, store: Path) -> None:
    """What another process has for itself, as a compaction does while it swaps the files."""
    often.next(Seen)
    holding = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "alone\n"
        for _ in range(3):
            event = often.next(Trouble)
            assert (event.code, event.lasting) == (Code.BUSY, False)
        holding.communicate("")
    often.next(Seen)


ALONE = """
import sys
import threading
from equeue_core import Store
from equeue_core._store._owners import Owners
with Store(sys.argv[1]) as store:
    environment = store._environment
    while True:
        try:
            with environment.owners.exclusive_presence():
                print("alone", flush=True)
                sys.stdin.read()
                break
        except BlockingIOError:
            pass  # in the middle of a look
"""


@pytest.mark.contract("CLI-09")
def test_between_two_looks_the_store_is_not_open(store: Path) -> None:
    with LMDBRedis(store) as connection:
        queue = rq.Queue(connection=connection)
        queue.enqueue("os.path.nope")
        worker = rq.SimpleWorker([queue], connection=connection)
        worker.work(burst=True, logging_level="CRITICAL")
        started = queue.enqueue("os.getcwd")
        connection.zadd(queue.started_job_registry.key, {f"{started.id}:1": 2e9})
        rq.Worker([queue], connection=connection, name="w").register_birth()
    watcher = Watcher(str(store), NEVER, print)
    gc.collect()
    # Nothing may refer to itself, and stay until the garbage is collected.
    gc.disable()
    try:
        for _ in range(3):
            look = watcher.look()
            assert (look.total("failed"), look.total("running"), look.workers) == (2, 1, 1)
            opened = [each.directory for each in _registry._environments.values()]
            assert str(store) not in opened
    finally:
        gc.enable()


@pytest.mark.contract("CLI-09")
def test_a_store_is_compacted_and_replaced_meanwhile(
    never: Watched, store: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    for words in (
        ("compact", store),
        ("backup", store, copy),
        ("purge", store, "mail", "--state", "pending", "--yes"),
        ("restore", copy, store, "--replace", "--yes"),
    ):
        never.watcher.ask(lambda store: None, print)
        never.next(Seen)
        done = equeue(*words)
        assert done.returncode == 0, done.stderr
    never.watcher.ask(lambda store: None, print)
    assert never.next(Seen).look.total("pending") == 2


def test_it_stops_although_it_waits_for_a_lock(store: Path) -> None:
    """The program ends without it."""
    with open(store / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        watched = Watched(store, NEVER)
        watched.watcher.ask(lambda store: None, print)
        watched.watcher.stop(patience=0.01)
        assert watched.told.empty()
        assert watched.watcher._thread.daemon
        fcntl.flock(lock, fcntl.LOCK_UN)
    watched.watcher.stop(WATCHDOG)
    assert not watched.watcher._thread.is_alive()
    assert os.path.exists(store)


def test_nothing_is_going_on_while_it_is_at_rest(never: Watched) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(store: Store) -> None:
        begun.set()
        assert go_on.wait(WATCHDOG)

    never.watcher.ask(work, print)
    assert begun.wait(WATCHDOG)
    with never.watcher.at_rest(patience=0.01):
        assert never.told.empty(), "it has not waited for ever"
    go_on.set()
    never.next(Seen)
    with never.watcher.at_rest(WATCHDOG):
        never.watcher.ask(lambda store: None, print)
        with pytest.raises(queue.Empty):
            never.told.get(timeout=0.05)
    never.next(Answered)


# A store that is removed in the middle of a look is not made again.


@pytest.mark.contract("CLI-02", "CLI-11")
def test_removed_before_it_is_opened(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(str(store), NEVER, print)
    peek = _peek.peek

    def late(path: str) -> object:
        found = peek(path)
        remove(store)
        return found

    monkeypatch.setattr(_peek, "peek", late)
    with pytest.raises(StoreRemoved):
        watcher.look()
    assert not store.exists()


@pytest.mark.contract("CLI-02", "CLI-11")
@pytest.mark.parametrize("what", ["all of it", "its data"])
def test_removed_before_rqs_queues_are_looked_for(
    what: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LMDBRedis(store) as connection:
        rq.Queue(connection=connection).enqueue("os.getcwd")
    watcher = Watcher(str(store), NEVER, print)
    queues = views.queues

    def late(*arguments: Any) -> list[views.QueueView]:
        if what == "all of it":
            remove(store)
        else:
            (store / "data.mdb").unlink()
        return queues(*arguments)

    monkeypatch.setattr(views, "queues", late)
    with pytest.raises(StoreRemoved):
        watcher.look()
    assert not (store / "data.mdb").exists()


@pytest.mark.contract("CLI-02", "CLI-11")
def test_removed_while_it_is_opened(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(str(store), NEVER, print)
    open_map = Environment._open_map

    def late(self: Environment, sync: str) -> object:
        (store / "data.mdb").unlink()
        return open_map(self, sync)

    monkeypatch.setattr(Environment, "_open_map", late)
    with pytest.raises(StoreRemoved):
        watcher.look()


def test_stores_that_are_there_are_opened_and_others_made_as_ever(store: Path) -> None:
    with _files.making_none():
        assert Store(store).queues() == ["mail"]
        with pytest.raises(StoreRemoved):
            Store(store / "none").queues()
    with Store(store / "none") as made:
        assert made.queues() == []
