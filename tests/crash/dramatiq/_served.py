"""What the command loads: the application of the test's directory."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import dramatiq
import dramatiq.worker

from .._command import end_with
from ._application import DIRECTORY, OPTIONS, TEST, Application

# Five seconds, which no test can wait for.
dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS = 0.1


if os.environ[TEST]:
    end_with(int(os.environ[TEST]))

application = Application(Path(os.environ[DIRECTORY]), **json.loads(os.environ[OPTIONS]))
broker = application.broker
dramatiq.set_broker(broker)


def scheduler() -> int:
    """A function for `--fork-function`: send messages, and stay until it is told to end."""
    for number in range(50):
        application.send("mark", f"scheduled-{number}")
    application.witness.note("scheduled", "all")
    while True:
        signal.pause()
