"""Destructors that use a store: the garbage collector runs them anywhere."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Store
from equeue_core._store import _apart
from equeue_core.storage import Space, SpaceId, in_operation
from tests.contract.helpers import WATCHDOG


class _Garbage:
    """Calls something when it is collected, which takes a collector: it is in a cycle."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._cycle = self

    def __del__(self) -> None:
        self._call()


def test_none_is_run_where_a_store_is_opened() -> None:
    """It would wait for the thread that waits for the opening."""
    threads: list[int] = []

    def work() -> None:
        assert in_operation()  # for what is destroyed without a collector
        for _ in range(50):
            _Garbage(lambda: threads.append(threading.get_ident()))
        threads.append(0)

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        _apart.run(work)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert threads == [0] + [threading.get_ident()] * 50


def test_the_collector_goes_on_after_an_opening(path: Path) -> None:
    assert gc.isenabled()
    with Store(path) as store:
        store.queues()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off(path: Path) -> None:
    gc.disable()
    try:
        with Store(path) as store:
            store.queues()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_is_forked_meanwhile_collects() -> None:
    statuses: list[int] = []

    def work() -> None:
        pid = os.fork()
        if not pid:
            os._exit(0 if gc.isenabled() and not _apart.is_here() else 1)
        statuses.append(os.waitpid(pid, 0)[1])

    _apart.run(work)
    assert statuses == [0]


def test_one_that_closes_a_store_in_the_midst_of_an_operation(path: Path) -> None:
    """Another thread closes the operation's own store, and waits for it to end."""
    store, other = Store(path), Store(path.with_name("other"))
    other.queues()
    closer = threading.Thread(target=store.close)

    def operation(txn: Any) -> None:
        closer.start()
        while not repr(store).endswith("closed>"):
            closer.join(0.001)
        other.close()

    with Space(store, SpaceId.RQ) as space:
        space.write(operation)
    closer.join(WATCHDOG)
    assert not closer.is_alive()
    other.close()
    assert repr(other).endswith("closed>")
