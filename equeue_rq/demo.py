"""What ``make demo`` runs for RQ: a producer, the ``rq`` command, a work horse and a worker killed."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import rq

from equeue_core import Store
from equeue_core.demo import running, say, wait_until
from equeue_rq import LMDBRedis

WORKERS = 2
MAILS = 40
JOBS = MAILS + 2


def _load(directory: Path) -> ModuleType:
    """The jobs, as their producer imports them."""
    os.environ["EQUEUE_DEMO"] = str(directory)
    from equeue_rq import _demo_jobs

    return _demo_jobs


def _show_results(queue: rq.Queue, jobs: ModuleType) -> bool:
    mails = [queue.enqueue(jobs.send_mail, number) for number in range(MAILS)]
    say(f"{MAILS} jobs are enqueued; each runs in a work horse that its worker forks.")
    wait_until(lambda: all(mail.is_finished for mail in mails))
    result = mails[-1].return_value()
    say(f"All have run. The last one returned {result!r}.")
    return bool(result == f"mail {MAILS - 1} is sent")


def _show_killed_horse(queue: rq.Queue, jobs: ModuleType) -> None:
    queue.enqueue(jobs.resize_picture, retry=rq.Retry(max=1))
    wait_until(lambda: len(jobs.runs("resize_picture")) == 1)
    (first,) = jobs.runs("resize_picture")
    say(f"Work horse {first.horse} is in the middle of resize_picture, which takes a minute.")
    say("It is killed with SIGKILL.")
    killed = time.monotonic()
    os.kill(first.horse, signal.SIGKILL)
    wait_until(lambda: len(jobs.runs("resize_picture")) == 2)
    took = (jobs.runs("resize_picture")[1].at - killed) * 1000
    say(f"Its worker has seen that; the job was started again {took:.1f} ms after that.")


def _show_killed_worker(queue: rq.Queue, jobs: ModuleType) -> None:
    queue.enqueue(jobs.cut_film, retry=rq.Retry(max=1))
    wait_until(lambda: len(jobs.runs("cut_film")) == 1)
    (first,) = jobs.runs("cut_film")
    say(f"Work horse {first.horse} of worker {first.worker} is in the middle of cut_film.")
    say("Both are killed, and nobody is left who could tell of it.")
    killed = time.monotonic()
    os.kill(first.worker, signal.SIGKILL)
    os.kill(first.horse, signal.SIGKILL)
    wait_until(lambda: len(jobs.runs("cut_film")) == 2)
    second = jobs.runs("cut_film")[1]
    took = (second.at - killed) * 1000
    say(f"Worker {second.worker} has taken the job over, {took:.1f} ms after that.")


def _show_counts(queue: rq.Queue, jobs: ModuleType) -> bool:
    started = len(jobs.runs("resize_picture")), len(jobs.runs("cut_film"))
    finished, failed = queue.finished_job_registry.count, queue.failed_job_registry.count
    say(f"The workers are stopped. Finished: {finished}, failed: {failed}, waiting: {len(queue)}.")
    say(f"Each of the two jobs whose processes were killed was started {max(started)} times.")
    return started == (2, 2) and (finished, failed, len(queue)) == (JOBS, 0, 0)


def show(directory: Path) -> bool:
    """Run the demo in the directory; whether every job ran as it should."""
    jobs = _load(directory)
    say(f"RQ on a directory. {WORKERS} `rq worker` commands start; there is no Redis server.")
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", f"lmdb://{directory / 'data'}"]
    command += ["--connection-class", "equeue_rq.LMDBRedis", "--worker-class", "equeue_rq.Worker"]
    with LMDBRedis(directory / "data") as connection:
        queue = rq.Queue(connection=connection)
        with running(WORKERS, command, directory / "workers.log", "Listening on"):
            right = _show_results(queue, jobs)
            _show_killed_horse(queue, jobs)
            _show_killed_worker(queue, jobs)
            wait_until(lambda: queue.finished_job_registry.count == JOBS)
        right = _show_counts(queue, jobs) and right
    with Store(directory / "data") as store:
        right = store.check().ok and right
    say("No job was lost, none ran twice to its end." if right else "Not as it should be.")
    return right


def main() -> int:
    """Run the demo; the exit status."""
    with tempfile.TemporaryDirectory(prefix="equeue-demo-") as directory:
        return 0 if show(Path(directory)) else 1


if __name__ == "__main__":
    sys.exit(main())
