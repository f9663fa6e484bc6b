"""Small file systems to fill."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _run(*command: str) -> str:
    """Run a command; returns why it failed, or nothing."""
    if not shutil.which(command[0]):
        return f"there is no {command[0]}(8) here"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() or "it failed" if done.returncode else ""


@contextmanager
def mounted(kind: str, at: Path, size: int) -> Iterator[Path]:
    """A new file system of about `size` bytes, or a skip where it cannot be made."""
    at.mkdir()
    image = at.with_suffix(".img")
    if kind == "tmpfs":
        failure = _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at))
    else:
        image.write_bytes(b"")
        os.truncate(image, size)
        failure = _run("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", str(image))
        failure = failure or _run("mount", "-o", "loop", str(image), str(at))
    if failure:
        pytest.skip(f"cannot mount a small {kind} here: {failure}")
    try:
        yield at
    finally:
        # A process that was killed may be a moment in leaving.
        subprocess.run(["umount", "--lazy", str(at)], check=True)
        image.unlink(missing_ok=True)


def free_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


class Filler:
    """A file that takes all the room that is left."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "filler"

    def fill(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            for size in (1 << 16, 4096, 512, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue
            os.fsync(file.fileno())

    def remove(self) -> None:
        self._path.unlink()
