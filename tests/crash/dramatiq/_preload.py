"""Programs of test_preload: an application that is imported, or used, before the process forks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from dramatiq import Worker

from .._procs import RUN
from .._talk import hear, say
from ._application import Application

CHILDREN = 4


def imported_only(directory: str) -> None:
    """Make everything that modules make when they are imported; say what is in the directory then."""
    application = Application(Path(directory))
    application.message("mark", "never")
    say(*sorted(entry.name for entry in Path(directory).iterdir()))


def preload(directory: str, messages: str, used: str) -> None:
    """A server that loads the application, forks its children, and goes on itself, as gunicorn with
    preload: parent and children send, and each child runs messages.
    """
    application = Application(Path(directory), sync="off")
    worker = Worker(application.broker, worker_threads=2, worker_timeout=100)
    if used == "used":
        application.send("mark", "before")
        worker.start()
    sending = threading.Thread(target=send, args=(application, "parent", int(messages)))
    sending.start()
    children = []
    for number in range(CHILDREN):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                serve(application, f"child.{number}", int(messages))
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    sending.join()
    say("forked")
    hear()
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    say(*[os.waitpid(pid, 0)[1] for pid in children])
    if used == "used":
        worker.stop()
    application.close()


def serve(application: Application, name: str, messages: int) -> None:
    """What a child does, until SIGTERM."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    worker = Worker(application.broker, worker_threads=2, worker_timeout=100)
    worker.start()
    send(application, name, messages)
    told.wait()
    worker.stop()
    application.close()


def send(application: Application, name: str, messages: int) -> None:
    for number in range(messages):
        application.send("mark", f"{name}-{number}")


def reload(directory: str, generation: str) -> None:
    """A development server that runs itself anew when a source file has changed, as Django's: by
    `exec`, with a worker in the middle of a message.
    """
    application = Application(Path(directory), sync="off")
    worker = Worker(application.broker, worker_threads=1, worker_timeout=100)
    worker.start()
    say("up", generation)
    hear()
    again = [sys.executable, "-m", RUN, f"{__name__}:reload", directory, str(int(generation) + 1)]
    os.execv(sys.executable, again)
