"""Runs the files of Dramatiq's tests, some at a time, each in a pytest of its own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.upstream._archive import NEWEST

HERE = Path(__file__).parent
LEFT_OUT = HERE / "left_out.json"

# The longest first: most of their time is sleep, so several run at once.
FILES = [
    "test_cli.py",
    "test_redis.py",
    "test_watch.py",
    "test_window_rate_limiter.py",
    "test_composition.py",
    "test_rabbitmq.py",
    "test_actors.py",
    "test_pidfile.py",
    "test_results.py",
    "test_worker.py",
    "test_stub_broker.py",
    "test_bucket_rate_limiter.py",
    "test_barrier.py",
    "test_callbacks.py",
    "test_concurrent_rate_limiter.py",
    "test_broker.py",
    "test_encoders.py",
    "test_generic_actors.py",
    "test_messages.py",
]
# They write files of fixed names under /tmp.
ALONE_ON_THE_MACHINE = {"test_cli.py", "test_watch.py"}
AT_ONCE = 3
SECONDS_FOR_A_FILE = 200
SECOND_TRIES = 3
_OUTPUT = 20_000


@dataclass(frozen=True)
class LeftOut:
    """A group of tests that are not run.

    Attributes:
        reason: why.
        tests: their node ids, or names of whole files.
        versions: the versions of Dramatiq that have them, if the newest has not.
    """

    reason: str
    tests: list[str]
    versions: list[str] = field(default_factory=list)


@dataclass
class Report:
    """What became of one file.

    Attributes:
        passed: the number of tests that passed, at the second try as well.
        left_out: the number of tests that were not run.
        second_try: the ids of those that failed at the first.
        failed: the ids of those that failed, and of those that were skipped, which none should be.
        output: what pytest wrote.
    """

    passed: int = 0
    left_out: int = 0
    second_try: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    output: str = ""


def left_out() -> list[LeftOut]:
    """All tests that are not run, as the data file has them."""
    return [LeftOut(**group) for group in json.loads(LEFT_OUT.read_text(encoding="utf-8"))]


def left_out_of(version: str) -> dict[str, bool]:
    """The tests that are left out of a version, and whether it must have them.

    An older version may lack what was left out with the newest in mind.
    """
    return {
        test: version in (group.versions or [NEWEST])
        for group in left_out()
        if version in (group.versions or [version])
        for test in group.tests
    }


class Suite:
    """Dramatiq's tests with what their archive lacks beside them, and the runs of their files.

    Parameters:
        tests: the unpacked tests.
        version: of Dramatiq.
        work: an empty directory for stores and reports.
        files: those that are to run.
        control: run them on Dramatiq's own in-memory broker and backends, to test the fixtures.
    """

    def __init__(
        self, tests: Path, version: str, work: Path, files: Iterable[str], *, control: bool = False
    ):
        for path in (HERE / "supplied").glob("*.py"):
            shutil.copy(path, tests / path.name)
        names = json.dumps(left_out_of(version))
        (tests / LEFT_OUT.name).write_text(names, encoding="utf-8")
        self._tests = tests
        self._work = work
        self._control = control
        self._running: set[subprocess.Popen[str]] = set()
        self._executor = ThreadPoolExecutor(AT_ONCE)
        wanted = set(files)
        self._reports: dict[str, Future[Report]] = {
            file: self._executor.submit(self._run_file, file) for file in FILES if file in wanted
        }

    def report(self, file: str) -> Report:
        """Wait until the file has run."""
        return self._reports[file].result()

    def stop(self) -> None:
        """End what still runs."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.send_signal(signal.SIGINT)  # so that it ends what it has started
        self._executor.shutdown()

    def _run_file(self, file: str) -> Report:
        with _alone(file) if file in ALONE_ON_THE_MACHINE else contextlib.nullcontext():
            return self._run_with_second_try(file)

    def _run_with_second_try(self, file: str) -> Report:
        first = self._pytest(file, [f"tests/{file}"])
        if not 0 < len(first.failed) <= SECOND_TRIES or not first.passed:
            return first
        # Dramatiq's tests have time limits, some of 10 ms, which no shared machine always keeps.
        second = self._pytest(f"{file}-again", [f"tests/{each}" for each in first.failed])
        if second.failed or not second.passed:
            first.output += second.output
            return first
        return Report(
            first.passed + second.passed, first.left_out, first.failed, output=first.output
        )

    def _pytest(self, name: str, arguments: list[str]) -> Report:
        results = self._work / f"{name}.xml"
        stores = self._work / name
        stores.mkdir()
        options = [
            "--rootdir=.",
            "-c",
            os.devnull,
            "-p",
            "tests.fixtures",
            "-p",
            "no:cacheprovider",
        ]
        options += [
            "-ra",
            "-q",
            "--timeout=60",
            f"--basetemp={stores}/tmp",
            f"--junitxml={results}",
        ]
        environment = {name: text for name, text in os.environ.items() if name != "PYTEST_ADDOPTS"}
        environment["EQUEUE_UPSTREAM_STORES"] = str(stores)
        environment["EQUEUE_UPSTREAM_CONTROL"] = "1" if self._control else ""
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=self._tests.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            output, _ = process.communicate(timeout=SECONDS_FOR_A_FILE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + "\nstopped: it took too long"
        finally:
            self._running.discard(process)
        return _read(results, process.returncode, output)


@contextlib.contextmanager
def _alone(file: str) -> Iterator[None]:
    """Wait until no other run on this machine runs the file."""
    with (Path(tempfile.gettempdir()) / f"equeue-upstream-{file}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(results: Path, status: int, output: str) -> Report:
    deselected = re.search(r"(\d+) deselected", output)
    report = Report(left_out=int(deselected[1]) if deselected else 0, output=output[-_OUTPUT:])
    cases = ElementTree.parse(results).getroot().iter("testcase") if results.exists() else []
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name')}"
        if any(child.tag in ("failure", "error", "skipped") for child in case):
            report.failed.append(name)
        else:
            report.passed += 1
    if status and not report.failed:
        report.failed.append(f"pytest ended with status {status}")
        report.passed = 0
    return report
