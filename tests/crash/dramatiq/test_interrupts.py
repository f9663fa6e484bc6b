"""Time limits, shutdown notices and aborts: exceptions at any point of a message's way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .._ledger import assert_sound
from .._procs import Child
from . import _interrupts
from ._application import Application, run_of
from ._commands import Starter

#: hits and the longest time between two, in microseconds
MODES = [("off", 600, 600), ("full", 300, 1_500)]
LONG = [
    pytest.param(sync, 20 * hits, longest, marks=pytest.mark.torture)
    for sync, hits, longest in MODES
]


@pytest.fixture
def application(tmp_path: Path, sync: str) -> Iterator[Application]:
    application = Application(tmp_path, sync=sync, done_message_ttl=_interrupts.KEPT)
    yield application
    application.close()


@pytest.mark.contract("DRE-06")
@pytest.mark.parametrize(("sync", "hits", "longest"), [*MODES, *LONG])
def test_exceptions_at_random_points(
    application: Application,
    tmp_path: Path,
    spawn: Callable[..., Child],
    start: Starter,
    sync: str,
    hits: int,
    longest: int,
) -> None:
    child = spawn(_interrupts.serve, tmp_path, sync, hits, longest)
    thrown, ended, sent = map(int, child.line(60 + hits).split())
    print(f"{thrown} exceptions, {ended} of them outside of actors")
    assert thrown >= hits
    assert ended > hits / 4
    # The process is still there, and has left neither a lock nor a claim behind.
    assert child.line() == "0", "messages in hand"
    assert_sound(application.broker.store)
    start(1, 4, options={"sync": sync, "done_message_ttl": _interrupts.KEPT}).workers()
    application.join()
    assert_sound(application.broker.store)

    counts = application.broker.stats("default")
    assert counts["done"] == counts["total"]
    done = application.done()
    runs = Counter(map(run_of, done))
    assert [run for run, times in runs.items() if times > 1] == [], "retries that were sent twice"
    assert len({message.args[0] for message in done}) == sent
    failed = {message.args[0] for message in done if message.actor_name == "fails_once"}
    again = {message.args[0] for message in done if message.options.get("retries")}
    assert failed - again == set(), "retries that were lost"
    child.tell("bye")
    child.finish()
