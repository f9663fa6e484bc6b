"""What the platform's FIFOs can do, found out by trying."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from equeue_core._store._bell_descriptor import open_fifo, open_file
from equeue_core._store._wait_poller import Poller


def hang_ups_work(directory: str, make_poller: Callable[[], Poller]) -> bool:
    """Whether a hang-up is seen by those who had the FIFO open, and by nobody who opens it later.

    Linux and the BSDs do this. Where all readers share one state, a reader could never sleep again
    after the first hang-up.
    """
    # Threads may try at the same time, and processes of the same number in several containers.
    path = os.path.join(directory, f"probe-{secrets.token_hex(8)}")
    poller = make_poller()
    try:
        before = open_fifo(path, os.O_RDONLY)
        poller.add(before.fileno())
        quiet = not poller.wait(0)
        open_file(path, os.O_WRONLY | os.O_NONBLOCK).close()
        heard = bool(poller.wait(0))
        poller.remove(before.fileno())
        after = open_fifo(path, os.O_RDONLY)
        poller.add(after.fileno())
        return quiet and heard and not poller.wait(0)
    finally:
        os.unlink(path)
        poller.close()
