"""System calls of a child process, recorded by strace(1)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FLUSHES = ("fdatasync", "fsync", "msync", "sync_file_range", "sync", "syncfs")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
OTHERS = ("openat", "lseek", "ftruncate", "fallocate")
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_FILE = re.compile(r"^(-?\d+)<([^>]*)>")
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DECIMAL = re.compile(r"\d+")


def require() -> None:
    """Skip the test where processes cannot be traced."""
    if not shutil.which("strace"):
        pytest.skip("there is no strace(1) here")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("this system does not let one process trace another")


def command(record: Path, *, data: bool = False) -> tuple[str, ...]:
    """What runs a program and records its flushes and writes, if asked with all their data."""
    calls = ",".join((*FLUSHES, *WRITES, *OTHERS))
    size = str(1 << 24 if data else 4096)
    return ("strace", "-f", "-y", "-xx", "-s", size, "-e", f"trace={calls}", "-o", str(record))


@dataclass
class Call:
    """One system call. `begins` and `ends` place it in time; `data` is what a write wrote."""

    name: str
    arguments: str
    begins: int
    ends: int = -1
    result: str = ""

    @property
    def file(self) -> str:
        """Path of the file that the first argument is a descriptor of."""
        match = _FILE.match(self.arguments)
        return _decoded(match[2]) if match else ""

    @property
    def descriptor(self) -> int:
        match = _FILE.match(self.arguments)
        return int(match[1]) if match else -1

    @property
    def data(self) -> bytes:
        return b"".join(bytes.fromhex(t.replace("\\x", "")) for t in _BYTES.findall(self._after()))

    @property
    def offset(self) -> int:
        """Where an lseek goes, or a pwrite or pwritev writes."""
        last = self._after().rpartition('"')[2].rpartition("]")[2]
        return int(_DECIMAL.findall(last)[0 if self.name == "lseek" else 1])

    def _after(self) -> str:
        before_result = self.arguments.rpartition(") = ")[0] or self.arguments
        return before_result.partition(">")[2]


def _decoded(path: str) -> str:
    return bytes.fromhex(path.replace("\\x", "")).decode() if path.startswith("\\x") else path


def read(record: Path) -> list[Call]:
    """The calls in the order in which they began."""
    calls: list[Call] = []
    open_calls: dict[str, Call] = {}
    for time, line in enumerate(_lines(record)):
        if match := _CALL.match(line):
            calls.append(Call(match[2], match[3], time))
            if match[3].endswith("<unfinished ...>"):
                open_calls[match[1]] = calls[-1]
            else:
                _end(calls[-1], match[3], time)
        elif match := _RESUMED.match(line):
            _end(open_calls.pop(match[1]), match[3], time)
    return calls


def _end(call: Call, text: str, time: int) -> None:
    call.ends = time
    call.result = text.rpartition(" = ")[2]


def _lines(record: Path) -> Iterator[str]:
    with record.open() as lines:
        for line in lines:
            yield line.rstrip("\n")


MARKS = "marks"


def flushes(calls: list[Call]) -> dict[str, int]:
    """How often each part between two marks made the disk flush. A mark names what follows it.

    Marks are writes to a file of that name. A write through a descriptor that was opened for
    synchronous writing counts as a flush.
    """
    counts: dict[str, int] = {}
    synchronous: set[int] = set()
    mark = ""
    for call in calls:
        if call.name == "openat":
            descriptor = int(call.result.partition("<")[0].split()[0])
            is_synchronous = "O_DSYNC" in call.arguments or "O_SYNC" in call.arguments
            (synchronous.add if is_synchronous else synchronous.discard)(descriptor)
        elif call.name in WRITES and call.file.endswith(f"/{MARKS}"):
            mark = call.data.decode()
            counts[mark] = 0
        elif mark and (
            call.name in FLUSHES or (call.name in WRITES and call.descriptor in synchronous)
        ):
            counts[mark] += 1
    return counts
