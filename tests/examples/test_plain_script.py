"""The script: stopped, killed and started again, it makes each thumbnail."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from PIL import Image

from equeue_core import Queue
from tests.examples._example import Example, Terminal, wait_until

pytestmark = pytest.mark.once


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example("plain-script", tmp_path)


@pytest.fixture
def held(example: Example) -> Path:
    """A picture whose reader waits until it is killed, beside a good one: a FIFO that nobody fills."""
    photos = example.directory / "photos"
    photos.mkdir()
    Image.new("L", (640, 480)).save(photos / "good.png")
    os.mkfifo(photos / "held.png")
    return photos / "held.png"


def in_hand(example: Example, terminal: Terminal) -> tuple[Queue[dict[str, str]], int]:
    """The queue, once the held picture is the only job, and the process that works on it."""
    terminal.wait_for(r"process \d+: held.png")
    queue = Queue[dict[str, str]](example.directory / "data", "thumbnails")
    wait_until(lambda: len(queue.jobs()) == 1, "the good one is done")
    (job,) = queue.jobs("running")
    (pid,) = (owner.pid for owner in queue.store.owners() if owner.owner_id == job.owner)
    return queue, pid


def replace(held: Path) -> None:
    """Who opens the picture from now on, can read it."""
    Image.new("L", (640, 480)).save(held.with_name("new.png"))
    held.with_name("new.png").rename(held)


def thumbnails(example: Example) -> list[str]:
    return sorted(path.name for path in (example.directory / "thumbnails").iterdir())


def test_the_readme_from_its_first_command_to_its_last(example: Example) -> None:
    example.check("pictures")
    example.check("thumbnails")
    made = [f"photo-{number:03}.png.jpg" for number in range(1, 11)]
    assert thumbnails(example) == made
    with Image.open(example.directory / "thumbnails" / made[-1]) as image:
        assert image.size == (320, 213)
    example.check("broken", status=1)
    assert thumbnails(example) == made
    with example.running("more") as terminal:
        terminal.wait_for(r"process \d+: photo-")
        assert terminal.ctrl_c() == 130
    assert "191 thumbnails to make" in terminal.printed()  # the broken one among them
    stopped = re.search(r"stopped; (\d+) to go\n$", terminal.printed())
    assert stopped is not None
    with example.running("thumbnails") as terminal:
        terminal.wait_for(r"process \d+: photo-")
        assert terminal.terminate() == 130
    assert terminal.printed().splitlines()[0] == f"{stopped[1]} thumbnails to make"


def test_what_is_there_is_not_made_again(example: Example, held: Path) -> None:
    replace(held)
    assert example.run("thumbnails")[0] == 0
    assert example.run("thumbnails") == (0, "0 thumbnails to make\nall done\n")


def test_a_killed_workers_picture_is_anothers(example: Example, held: Path) -> None:
    with example.running("thumbnails") as terminal:
        _, pid = in_hand(example, terminal)
        assert pid in terminal.pids()
        replace(held)
        os.kill(pid, signal.SIGKILL)
        assert terminal.wait() == 0
    assert thumbnails(example) == ["good.png.jpg", "held.png.jpg"]
    assert terminal.printed().endswith("all done\n")


def test_all_are_killed_and_the_next_run_goes_on(example: Example, held: Path) -> None:
    with example.running("thumbnails") as terminal:
        queue, _ = in_hand(example, terminal)
        terminal.kill()
    assert thumbnails(example) == ["good.png.jpg"]
    assert queue.stats()["running"] + queue.stats()["pending"] == 1
    replace(held)
    status, printed = example.run("thumbnails")
    assert status == 0
    assert printed.splitlines()[0] == "1 thumbnails to make"
    assert thumbnails(example) == ["good.png.jpg", "held.png.jpg"]


@pytest.mark.parametrize("stop", ["ctrl_c", "terminate"])
def test_stopped_it_gives_back_what_it_had(example: Example, held: Path, stop: str) -> None:
    with example.running("thumbnails") as terminal:
        queue, _ = in_hand(example, terminal)
        assert getattr(terminal, stop)() == 130
    assert terminal.printed().endswith("stopped; 1 to go\n")
    (job,) = queue.jobs("pending")
    assert (Path(job.payload["photo"]).name, job.retries) == ("held.png", 0)
    replace(held)
    assert example.run("thumbnails")[0] == 0
    assert thumbnails(example) == ["good.png.jpg", "held.png.jpg"]


def test_a_wrong_directory_is_told(example: Example) -> None:
    status, printed = example.run("thumbnails")
    assert status == 2
    assert printed.splitlines()[-1].endswith("error: photos is not a directory")
