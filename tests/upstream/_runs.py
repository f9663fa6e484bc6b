"""Runs the files of another project's tests, some at a time, each in a pytest of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUPPLIED = Path(__file__).with_name("supplied")
AT_ONCE = 3
SECONDS_FOR_A_FILE = 250
SECOND_TRIES = 3
_OPTIONS = ["--rootdir=.", "-p", "no:cacheprovider", "-p", "pytest_timeout", "--timeout=60", "-ra"]
_OUTPUT = 20_000


@dataclass(frozen=True)
class Way:
    """How the files are run.

    Attributes:
        plugin: the pytest plugin with what the tests need.
        environment: given an empty directory for a file's run, the variables of its environment.
        modules: a directory of modules for the run's processes.
        skipped: the tests that must be skipped, and no others.
        deselected: tests that are not run.
        alone: the files of which no two runs may go on at the same time on the machine.
    """

    plugin: str
    environment: Callable[[Path], AbstractContextManager[dict[str, str]]]
    modules: Path | None = None
    skipped: AbstractSet[str] = frozenset()
    deselected: AbstractSet[str] = frozenset()
    alone: AbstractSet[str] = frozenset()


@dataclass
class Report:
    """What became of one file.

    Attributes:
        passed: the number of tests that passed, at the second try as well.
        left_out: the number of tests that were not run.
        second_try: the ids of those that failed at the first.
        failed: the ids of those that failed, and of those that were skipped and should not be.
        output: what pytest wrote.
    """

    passed: int = 0
    left_out: int = 0
    second_try: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    output: str = ""


class Suite:
    """A project's tests, and the runs of their files.

    Parameters:
        tests: the unpacked tests.
        work: an empty directory for stores and reports.
        files: those that are to run, the longest first: most of their time is sleep.
        way: how.
    """

    def __init__(self, tests: Path, work: Path, files: Iterable[str], way: Way):
        self._tests = tests
        self._work = work
        self._way = way
        self._running: set[subprocess.Popen[bytes]] = set()
        self._executor = ThreadPoolExecutor(AT_ONCE)
        self._first: dict[str, Future[Report]] = {
            file: self._executor.submit(self._run_file, file) for file in files
        }

    def report(self, file: str) -> Report:
        """Wait until the file has run; if few of its tests failed, run these again, alone."""
        first = self._first[file].result()
        if not 0 < len(first.failed) <= SECOND_TRIES or not first.passed:
            return first
        # These tests have time limits, some of 10 ms, which no busy machine always keeps.
        wait(self._first.values())
        second = self._run_file(file, first.failed)
        if second.failed or not second.passed:
            first.output += second.output
            return first
        return Report(
            first.passed + second.passed, first.left_out, first.failed, output=first.output
        )

    def stop(self) -> None:
        """End what still runs."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.send_signal(signal.SIGINT)  # so that it ends what it has started
        self._executor.shutdown()

    def _run_file(self, file: str, again: Sequence[str] = ()) -> Report:
        skipped = {each for each in self._way.skipped if each.startswith(f"{file}::")}
        with _alone(file) if file in self._way.alone else contextlib.nullcontext():
            if again:
                return self._pytest(f"{file}-again", again, set())
            return self._pytest(file, [file], skipped)

    def _pytest(self, name: str, tests: Sequence[str], skipped: AbstractSet[str]) -> Report:
        results = self._work / f"{name}.xml"
        directory = self._work / name
        directory.mkdir()
        options = [*_OPTIONS, "-q", "-c", os.devnull, "-p", self._way.plugin]
        options += [f"--deselect=tests/{test}" for test in sorted(self._way.deselected)]
        options += [f"--basetemp={directory}/tmp", f"--junitxml={results}"]
        output = directory / "output.txt"
        with self._way.environment(directory) as variables, output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
                cwd=self._tests.parent,
                env=self._environment() | variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
            status = _wait(process)
            self._running.discard(process)
        text = output.read_text(encoding="utf-8", errors="replace")
        return _read(results, status, text, skipped)

    def _environment(self) -> dict[str, str]:
        """This process's, with the commands beside its interpreter in front, and no plugins unasked."""
        variables = {name: text for name, text in os.environ.items() if name != "PYTEST_ADDOPTS"}
        variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        commands = str(Path(sys.executable).parent)
        variables["PATH"] = _joined(commands, variables.get("PATH", os.defpath))
        # An installed project's directory may have another package of the name `tests`.
        modules = [self._way.modules or "", self._tests.parent, variables.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = _joined(*map(str, modules))
        return variables


def wanted(request: pytest.FixtureRequest, name: str) -> list[str]:
    """The files whose test by this name in this module was selected, in the order of the tests."""
    return [
        item.callspec.params["file"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and item.originalname == name
    ]


def tell(request: pytest.FixtureRequest, project: str, report: Report) -> None:
    """Have the summary in conftest.py know. `record_property` does not get along with --junitxml."""
    request.node.user_properties += [
        ("project", project),
        ("passed", report.passed),
        ("left_out", report.left_out),
        ("second_try", report.second_try),
        ("first_try", report.output if report.second_try else ""),
    ]


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the process, but not too long, and kill what it leaves behind; its exit status."""

    def kill() -> None:  # the process is not collected before, so that the number is still its own
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(SECONDS_FOR_A_FILE, kill)
    timer.start()
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    finally:
        timer.cancel()
        timer.join()
        kill()
    return process.wait()


def _joined(*paths: str) -> str:
    return os.pathsep.join(filter(None, paths))


@contextlib.contextmanager
def _alone(file: str) -> Iterator[None]:
    """Wait until no other run on this machine runs the file."""
    with (Path(tempfile.gettempdir()) / f"equeue-upstream-{file}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(results: Path, status: int, output: str, skipped: AbstractSet[str]) -> Report:
    deselected = re.search(r"(\d+) deselected", output)
    report = Report(left_out=int(deselected[1]) if deselected else 0, output=output[-_OUTPUT:])
    left_out = set()
    for case in ElementTree.parse(results).getroot().iter("testcase") if results.exists() else []:
        name = _node_id(case)
        outcomes = {child.tag for child in case}
        if name in skipped and "skipped" in outcomes:
            left_out.add(name)
        elif outcomes & {"failure", "error", "skipped"}:
            report.failed.append(name)
        else:
            report.passed += 1
    report.left_out += len(left_out)
    if status and not report.failed:
        report.failed.append(f"pytest ended with status {status}")
        report.passed = 0
    elif left_out != skipped:
        report.failed += [f"not skipped: {name}" for name in sorted(skipped - left_out)]
        report.passed = 0
    return report


def _node_id(case: ElementTree.Element) -> str:
    """As pytest wants it, without the directory; that of a file that cannot be imported has no class."""
    _, *path = case.get("classname", "").split(".")
    file = [f"{path[0]}.py", *path[1:]] if path else []
    return "::".join([*file, case.get("name", "")])
