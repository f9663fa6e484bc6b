"""What worker processes note down for the benchmark: who waits at the gate, what was done when.

A directory with one mapped file for each process, so that a note costs no system call, and the gate:
a file that appears when all may start.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_PATIENCE = 120.0
_ROOM = 1 << 20
_head = struct.Struct("=4q")
_number = struct.Struct("=q")


class _Head(NamedTuple):
    """Threads that ever waited at the gate, notes made, and the moments of the first and the last (ns)."""

    waiting: int
    notes: int
    first: int
    last: int


class Pen:
    """Makes the notes of this process; its threads share it.

    Parameters:
        board: the board's directory.
        name: whose notes they are; None: this process's. Processes that run one after the other may go
            on with the same notes.
    """

    def __init__(self, board: Path, name: str | None = None) -> None:
        path = board / f"{name or os.getpid()}.notes"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(descriptor, _ROOM)
            self._map = mmap.mmap(descriptor, _ROOM)
        finally:
            os.close(descriptor)
        self._gate = board / "gate"
        self._open = False
        self._lock = threading.Lock()
        self._waiting, self._count, self._first, _ = _read_head(self._map)

    def pass_gate(self) -> None:
        """Wait until the gate is open.

        Raises:
            TimeoutError: it stays closed, perhaps because the benchmark is gone.
        """
        if self._open or self._gate.exists():
            self._open = True
            return
        with self._lock:
            self._waiting += 1
            self._write(0)
        deadline = time.monotonic() + _PATIENCE
        while not self._gate.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the gate was not opened")
            time.sleep(0.001)
        self._open = True

    def note(self, value: int | None = None) -> None:
        """Count one more, now; a value is kept."""
        with self._lock:
            now = time.monotonic_ns()
            self._first = self._first or now
            if value is not None:
                _number.pack_into(self._map, _head.size + self._count * _number.size, value)
            self._count += 1
            self._write(now)

    def _write(self, last: int) -> None:
        _head.pack_into(self._map, 0, self._waiting, self._count, self._first, last)


class Board:
    """Reads the notes of all processes."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory

    def wait_at_gate(self, threads: int, alive: Callable[[], None]) -> None:
        """Until so many threads wait; ``alive`` raises when they never will."""
        self._wait(lambda: sum(head.waiting for head in self._heads()) >= threads, alive)

    def open_gate(self) -> None:
        (self.directory / "gate").touch()

    def wait_done(self, count: int, alive: Callable[[], None]) -> None:
        """Until there are so many notes."""
        self._wait(lambda: sum(head.notes for head in self._heads()) >= count, alive)

    def seconds(self) -> float:
        """From the first note of any process to the last."""
        heads = [head for head in self._heads() if head.notes]
        return (max(head.last for head in heads) - min(head.first for head in heads)) * 1e-9

    def values(self) -> list[int]:
        """The values of all notes, process by process."""
        found: list[int] = []
        for path in self.directory.glob("*.notes"):
            notes = path.read_bytes()
            count = _read_head(notes).notes
            found += (each for (each,) in _number.iter_unpack(notes[_head.size :][: count * 8]))
        return found

    def _heads(self) -> list[_Head]:
        return [_read(path) for path in self.directory.glob("*.notes")]

    def _wait(self, reached: Callable[[], bool], alive: Callable[[], None]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not reached():
            alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the workers noted no more than {self._heads()}")
            time.sleep(0.005)


class Workers:
    """Worker processes of a command, each in a session of its own, and the board that they write on.

    Parameters:
        what: the command's name.
        board: what they write on.
        log: the file with what they say.
    """

    def __init__(self, what: str, board: Board, log: Path) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self._what = what
        self._board = board
        self._log = log

    def wait_at_gate(self, number: int) -> None:
        """See `Board.wait_at_gate`."""
        self._board.wait_at_gate(number, self._check)

    def open_gate(self) -> None:
        """Let all start."""
        self._board.open_gate()

    def wait_done(self, count: int) -> None:
        """See `Board.wait_done`."""
        self._board.wait_done(count, self._check)

    def seconds(self) -> float:
        """See `Board.seconds`."""
        return self._board.seconds()

    def values(self) -> list[int]:
        """See `Board.values`."""
        return self._board.values()

    def kill(self) -> None:
        """All is measured, and the place is thrown away: nobody waits for an orderly end."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _check(self) -> None:
        if any(process.poll() is not None for process in self.processes):
            text = self._log.read_text(errors="replace") if self._log.exists() else ""
            raise RuntimeError(f"{self._what} ended:\n{text[-3000:]}")


def _read(path: Path) -> _Head:
    with path.open("rb") as file:
        head = file.read(_head.size)
    # A process that has just made its file has not given it a size yet.
    return _read_head(head) if len(head) == _head.size else _Head(0, 0, 0, 0)


def _read_head(notes: bytes | mmap.mmap) -> _Head:
    return _Head(*_head.unpack_from(notes))
