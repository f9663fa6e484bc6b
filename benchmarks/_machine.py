"""What the figures were measured on. Nothing here names the machine."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks._figures import Unit

_FLUSHES = 200
_PAGE = b"\0" * 4096


def facts(directory: Path, versions: Mapping[str, str]) -> dict[str, str]:
    """Label and value for each line of a report's table; ``versions`` are those of what takes part."""
    lines = {
        "CPUs": f"{os.cpu_count()} ({_processor()})",
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "file system": file_system(directory),
        "fdatasync after overwriting 4 KiB": Unit.SECONDS.write(fdatasync_seconds(directory)),
        "fdatasync after appending 4 KiB": Unit.SECONDS.write(fdatasync_seconds(directory, True)),
        "load average at the start": f"{os.getloadavg()[0]:.2f}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    library = _lmdb_library()
    if library:
        lines["LMDB library"] = library
    return lines | dict(versions)


def file_system(directory: Path) -> str:
    """The type of the file system that holds the directory, "unknown" where it is not told."""
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return kind
    here = str(directory.resolve())
    for line in mounts:
        fields, _, tail = line.partition(" - ")
        point = fields.split()[4]
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, tail.split()[0]
    return kind


def fdatasync_seconds(directory: Path, append: bool = False) -> float:
    """Median time to flush one page that was overwritten in a small file, or appended to it."""
    with tempfile.TemporaryFile(dir=directory) as file:
        flush = getattr(os, "fdatasync", os.fsync)
        for _ in range(64):
            file.write(_PAGE)
        file.flush()
        os.fsync(file.fileno())
        times = []
        for number in range(_FLUSHES):
            place = 64 + number if append else number % 64
            os.pwrite(file.fileno(), _PAGE, place * len(_PAGE))
            start = time.perf_counter()
            flush(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _lmdb_library() -> str:
    try:
        import lmdb
    except ImportError:
        return ""
    return ".".join(str(part) for part in lmdb.version())
