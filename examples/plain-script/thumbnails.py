"""Makes a thumbnail of each picture in a directory, in several processes.

Stop it, kill it, start it again: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from pathlib import Path

from equeue_core import DuplicateJob, Queue, QueueEmpty
from PIL import Image

STORE = os.environ.get("THUMBNAILS_DATA", Path(__file__).resolve().with_name("data"))
SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp")
SIZE = (320, 320)


def add(queue: Queue[dict[str, str]], photos: Path, thumbnails: Path) -> None:
    """Put a job for each picture that has no thumbnail yet, or one that is older."""
    for photo in sorted(photos.iterdir()):
        if photo.suffix.lower() not in SUFFIXES:
            continue
        thumbnail = thumbnails / f"{photo.name}.jpg"
        if thumbnail.exists() and thumbnail.stat().st_mtime >= photo.stat().st_mtime:
            continue
        job = {"photo": str(photo), "thumbnail": str(thumbnail)}
        try:
            queue.put(job, unique=job["thumbnail"])
        except DuplicateJob:
            pass  # put by a run that was stopped, or by one that is still at work


def shrink(photo: Path, thumbnail: Path) -> None:
    unfinished = thumbnail.with_suffix(".part")  # a kill in the middle leaves no half a thumbnail
    with Image.open(photo) as image:
        image.thumbnail(SIZE)
        image.convert("RGB").save(unfinished, "JPEG")
    unfinished.replace(thumbnail)


def left(queue: Queue[dict[str, str]]) -> int:
    counts = queue.stats()
    return counts["pending"] + counts["scheduled"] + counts["running"]


def work(queue: Queue[dict[str, str]]) -> None:
    """A worker process: it ends when nothing is left, in no other worker's hands either."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the main process stops this one
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    while True:
        try:
            with queue.processing(timeout=0.5) as record:
                photo, thumbnail = Path(record.payload["photo"]), Path(record.payload["thumbnail"])
                print(f"process {os.getpid()}: {photo.name}", flush=True)
                try:
                    shrink(photo, thumbnail)
                except Exception as error:
                    record.fail(error)  # what cannot be read now cannot be read in a second either
        except QueueEmpty:
            if not left(queue):
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path, help="directory with pictures")
    parser.add_argument("thumbnails", type=Path, help="directory to write to")
    parser.add_argument("--processes", type=int, default=max(2, os.cpu_count() or 1))
    arguments = parser.parse_args()
    if not arguments.photos.is_dir():
        parser.error(f"{arguments.photos} is not a directory")
    arguments.thumbnails.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's Ctrl-C

    # A power cut may cost the last puts. The next run would put them again.
    with Queue[dict[str, str]](STORE, "thumbnails", sync="normal", keep_done=False) as queue:
        try:
            queue.purge("failed")  # `add` gives them another chance
            add(queue, arguments.photos.resolve(), arguments.thumbnails.resolve())
            print(f"{left(queue)} thumbnails to make", flush=True)
            for _ in range(arguments.processes):
                multiprocessing.Process(target=work, args=(queue,)).start()
            for worker in multiprocessing.active_children():
                worker.join()
        except KeyboardInterrupt:
            workers = multiprocessing.active_children()
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join()
            print(f"stopped; {left(queue)} to go")
            return 130
        failed = queue.jobs("failed", limit=1000)
        for job in failed:
            print(f"{job.payload['photo']}: {job.errors[-1].message}", file=sys.stderr)
        if left(queue):
            print(f"all workers have died; {left(queue)} to go", file=sys.stderr)
        elif not failed:
            print("all done")
        return 1 if failed or left(queue) else 0


if __name__ == "__main__":
    sys.exit(main())
