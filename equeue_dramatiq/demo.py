"""What ``make demo`` runs for Dramatiq: an application, the ``dramatiq`` command, a worker killed."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from equeue_core import State
from equeue_core.demo import running, say, wait_until

APP = "equeue_dramatiq._demo_app"
WORKERS = 3
MAILS = 200
MESSAGES = MAILS + 4
DELAY = 1500
"""Milliseconds by which a message is delayed."""


def _load(directory: Path) -> ModuleType:
    """The application, as its producers import it."""
    os.environ["EQUEUE_DEMO"] = str(directory)
    from equeue_dramatiq import _demo_app

    return _demo_app


def _show_delay_and_kill(app: ModuleType) -> None:
    sent = time.monotonic()
    app.remind.send_with_options(delay=DELAY)
    say(f"A message is sent with a delay of {DELAY} ms; it waits in the store.")
    app.resize_picture.send()
    wait_until(lambda: len(app.runs("resize_picture")) == 1)
    ((victim, _),) = app.runs("resize_picture")
    say(f"Worker process {victim} is in the middle of resize_picture, which takes a minute.")
    say("It is killed with SIGKILL: no clean-up, no last word.")
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(app.runs("resize_picture")) == 2)
    heir, taken = app.runs("resize_picture")[1]
    say(f"Process {heir} has taken its message over, {(taken - killed) * 1000:.1f} ms after that.")
    wait_until(lambda: len(app.runs("remind")) == 1)
    ((_, ran),) = app.runs("remind")
    say(f"The delayed message ran {(ran - sent) * 1000:.1f} ms after it was sent.")


def _show_priority(app: ModuleType) -> bool:
    """Whether the urgent message ran before most of the others."""
    mails = [app.send_mail.message(number) for number in range(MAILS)]
    app.broker.enqueue_many([*mails, app.raise_alarm.message()])
    say(f"{MAILS} messages of low priority are sent, and an urgent one last, all in one commit.")
    app.broker.join("default", timeout=30_000)
    ((_, alarm),) = app.runs("raise_alarm")
    before = sum(started < alarm for _, started in app.runs("send_mail"))
    say(f"All have run. Of the {MAILS}, {before} started before the urgent one.")
    return bool(before < MAILS / 2)


def _show_result(app: ModuleType) -> bool:
    sent = time.monotonic()
    result = app.add.send(2, 3).get_result(block=True)
    say(f"add(2, 3) is sent, and its result awaited: {result}, {_ms_since(sent):.1f} ms later.")
    return bool(result == 5)


def _ms_since(moment: float) -> float:
    return (time.monotonic() - moment) * 1000


def _show_counts(app: ModuleType) -> bool:
    queue = app.broker.queue("default")
    counts = app.broker.stats("default")
    say(f"The workers are stopped. Counts: {counts}.")
    (taken_over,) = (job for job in queue.jobs(State.DONE, limit=MESSAGES) if job.errors)
    say(f"One message was delivered {taken_over.attempts} times: {taken_over.errors[0].message}.")
    return bool(counts["done"] == MESSAGES == counts["total"] and app.broker.store.check().ok)


def show(directory: Path) -> bool:
    """Run the demo in the directory; whether every message ran as it should."""
    app = _load(directory)
    say(
        f"Dramatiq on a directory. {WORKERS} `dramatiq` commands start, each a process of 2 threads."
    )
    command = [sys.executable, "-m", "dramatiq", APP, "--processes", "1", "--threads", "2"]
    try:
        with running(WORKERS, command, directory / "workers.log", "is ready for action"):
            right = _show_result(app) and _show_priority(app)
            _show_delay_and_kill(app)
            app.broker.join("default", timeout=30_000)
        right = _show_counts(app) and right
    finally:
        app.broker.close()
    say("No message was lost, none ran twice to its end." if right else "Not as it should be.")
    return right


def main() -> int:
    """Run the demo; the exit status."""
    with tempfile.TemporaryDirectory(prefix="equeue-demo-") as directory:
        return 0 if show(Path(directory)) else 1


if __name__ == "__main__":
    sys.exit(main())
