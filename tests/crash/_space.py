"""Program of test_space: a process that stops itself in the middle of listing jobs."""

from __future__ import annotations

import os
import signal

from equeue_core import Queue

from ._talk import say


def list_and_stop(path: str) -> None:
    queue = Queue(path)
    page = queue.jobs("pending", limit=100)
    say("stopping")
    os.kill(os.getpid(), signal.SIGSTOP)
    while page:
        page = queue.jobs("pending", limit=100, after=page[-1])
    say("listed")
