"""RQ's command, which ends with the test that started it."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

from rq.cli import main

from .._command import end_with

TEST = "EQUEUE_TEST_PROCESS"  # the test's number


def begin() -> None:
    """Have this process end with the test, and the processes of its pool if it makes one; SIGUSR1 has them
    tell where they are."""
    pool, test = os.getpid(), int(os.environ[TEST])
    faulthandler.register(signal.SIGUSR1)
    end_with(test)
    if "worker-pool" in sys.argv:
        # The pool's own children only, not their horses: those should not know of threads.
        os.register_at_fork(after_in_child=lambda: os.getppid() == pool and end_with(test))


if __name__ == "__main__":
    begin()
    sys.exit(main(prog_name="rq"))
