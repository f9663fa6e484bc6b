"""What ``make demo`` runs: real processes, a real store, one worker killed in the middle of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from equeue_core import Queue, QueueEmpty, Record

JOBS = 200
WORKERS = 4
SLOW = "resize the big picture"
"""The job in the middle of which its worker is killed."""

_started = time.monotonic()


def say(text: str) -> None:
    """Print one line with the seconds since the start."""
    print(f"{time.monotonic() - _started:6.3f} s  {text}", flush=True)


def produce(path: str) -> None:
    """The producer process: put the jobs."""
    with Queue[str](path, "demo") as queue:
        queue.put(SLOW, priority=-1)
        for number in range(1, JOBS):
            queue.put(f"send e-mail {number}")


def work(path: str) -> None:
    """A worker process: work until nothing is left."""
    with Queue[str](path, "demo") as queue:
        while True:
            try:
                record = queue.get(timeout=2.0)
            except QueueEmpty:
                return
            _handle(path, record)
            record.ack(result=os.getpid())


def _handle(path: str, record: Record[str]) -> None:
    if record.payload != SLOW:
        time.sleep(0.002)
        return
    with (Path(path) / "slow").open("a") as log:
        log.write(f"{os.getpid()} {time.monotonic()}\n")
    if record.attempt == 1:
        time.sleep(60)  # it will not get that far


def _start(role: str, path: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "equeue_core.demo", role, path])


def _lines(log: Path) -> list[list[str]]:
    """Process id and time of each start of the slow job."""
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def wait_until(condition: Callable[[], bool]) -> None:
    """Look until it holds; half a minute at most."""
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the demo's workers did not get on: is the machine overloaded?")
        time.sleep(0.002)


@contextmanager
def running(number: int, command: list[str], output: Path, greeting: str) -> Iterator[None]:
    """Run so many processes of a command, from when each has printed its greeting; they end with SIGTERM.

    What they print goes into the file `output`, and is shown if something goes wrong.
    """
    with output.open("ab") as log:
        processes = [subprocess.Popen(command, stdout=log, stderr=log) for _ in range(number)]
    try:
        try:
            wait_until(lambda: output.read_text().count(greeting) == number)
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait()
    except BaseException:
        print(f"What the workers printed:\n{output.read_text()}", file=sys.stderr)
        raise


def show(path: str) -> bool:
    """Run the demo in the directory `path`; whether every job ran as it should."""
    log = Path(path) / "slow"
    with Queue[str](path, "demo") as queue:
        say(
            f"One directory is the whole queue. {WORKERS} worker processes start and wait for jobs."
        )
        workers = [_start("work", path) for _ in range(WORKERS)]
        wait_until(lambda: len(queue.store.owners()) == WORKERS)
        say(f"A producer process puts {JOBS} jobs. The first one is slow: {SLOW!r}.")
        if _start("produce", path).wait() != 0:
            raise RuntimeError("the producer failed")
        wait_until(lambda: len(_lines(log)) == 1 and queue.stats()["done"] == JOBS - 1)
        victim = int(_lines(log)[0][0])
        say(f"The others are done; process {victim} still works on the slow job.")
        say("It is killed with SIGKILL: no clean-up, no last word.")
        killed = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(_lines(log)) == 2)
        heir, taken = _lines(log)[1]
        after = (float(taken) - killed) * 1000
        say(f"Process {heir} has taken the job over, {after:.1f} ms after the kill.")
        for worker in workers:
            worker.wait()
        slow, counts = queue.job(1), queue.stats()
        say(f"The workers are done. Counts: {counts}.")
        say(f"The slow job was delivered {slow.attempts} times: {slow.errors[0].message}.")
        report = queue.store.check()
    complete = counts["done"] == JOBS == counts["total"] and report.ok and slow.attempts == 2
    say(
        "No job was lost, none ran twice to its end." if complete else f"Not as it should: {report}"
    )
    return complete


def main(arguments: list[str]) -> int:
    """Run the demo, or with arguments one of its processes; the exit status."""
    if len(arguments) == 2:
        {"produce": produce, "work": work}[arguments[0]](arguments[1])
        return 0
    with tempfile.TemporaryDirectory(prefix="equeue-demo-") as path:
        return 0 if show(path) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
