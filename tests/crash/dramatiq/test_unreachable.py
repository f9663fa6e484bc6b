"""A store that cannot be opened, for a while: Dramatiq's workers wait and try again."""

from __future__ import annotations

from pathlib import Path

import pytest
from dramatiq.errors import ConnectionFailed

from .._procs import wait_until
from ._application import Application
from ._commands import Starter, Watch

pytestmark = pytest.mark.once

OFTEN = {"dramatiq_restart_delay": "100"}
"""Milliseconds between two tries."""


@pytest.mark.contract("DRM-13")
@pytest.mark.parametrize("program", ["dramatiq", "dramatiq-gevent"])
def test_workers_go_on_when_the_store_can_be_opened(
    application: Application, watch: Watch, start: Starter, tmp_path: Path, program: str
) -> None:
    store = tmp_path / "store"
    store.write_text("a file in its place")
    command = start(2, 2, program=program, environment=OFTEN)
    command.workers()
    wait_until(lambda: command.log().count("connection error") > 8, "they try again and again")
    with pytest.raises(ConnectionFailed):
        application.send("mark", "refused")
    store.unlink()
    application.send("mark", "work")
    application.join()
    watch.check(["work"])
