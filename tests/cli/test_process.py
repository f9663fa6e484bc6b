"""The command as a process of its own: exit codes, pipes, Ctrl-C, terminals, and what may be missing."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import Queue
from equeue_core.cli._errors import Code
from tests.cli.test_watcher import remove
from tests.contract.helpers import WATCHDOG

pytestmark = pytest.mark.once

COMMAND = [sys.executable, "-m", "equeue_core"]

WITHOUT = """
import sys
sys.modules[sys.argv.pop(1)] = None
from equeue_core.cli import main
sys.exit(main())
"""

AS_NOBODY = """
import os, sys, tempfile
from equeue_core import Queue
from equeue_core.cli import _app, main  # all of it, while that can be read
with tempfile.TemporaryDirectory() as directory, Queue(directory) as queue:
    queue.put(1)  # what is imported at the first use, too
os.setgid(65534)
os.setuid(65534)
sys.exit(main())
"""

NOHUP = """
import signal, sys
from equeue_core.cli import main
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(main())
"""

HOLDING = """
import fcntl, sys
with open(sys.argv[1] + "/lock", "r+") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.contract("CLI-05")
def test_exit_codes_and_streams(store: Path) -> None:
    done = run("stats", store, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["queues"][0]["name"] == "mail"
    for arguments, code in {
        ("stats", store / "none"): Code.NOT_FOUND,
        ("show", store, "mail", 99): Code.NOT_FOUND,
        ("cancel", store, "mail", 1, "-y"): Code.REFUSED,
        ("jobs", store): Code.USAGE,
        ("nonsense",): Code.USAGE,
    }.items():
        failed = run(*arguments)
        assert (failed.returncode, failed.stdout) == (code, "")
        assert "Error: " in failed.stderr
        assert "Traceback" not in failed.stderr


def test_the_entry_point_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("equeue")
    if not script.exists():
        pytest.skip("the package is not installed")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("--version").stdout
    assert done.stdout.startswith("equeue ")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("latin-1", "m\xfcde \\u4e2d"), ("utf-8", "m\xfcde \u4e2d")]
)
def test_a_terminal_without_unicode(encoding: str, shown: str, store_path: Path) -> None:
    with Queue(store_path) as queue:
        queue.put("m\xfcde \u4e2d")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run("jobs", store_path, "default", env=environment, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout
    failed = run("stats", "\u4e2d", env=environment, encoding=encoding)
    assert failed.returncode == Code.NOT_FOUND
    assert "Traceback" not in failed.stderr


def test_words_that_are_no_text(store: Path) -> None:
    done = run(b"stats".decode(), os.fsdecode(b"\xff"))
    assert done.returncode == Code.NOT_FOUND
    assert "Traceback" not in done.stderr


@pytest.mark.contract("CLI-05")
@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_the_extra(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, "stats", "x"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (Code.MISSING, "")
    (line,) = done.stderr.splitlines()
    assert "pip install click rich" in line
    assert package in line


@pytest.mark.contract("CLI-05")
def test_a_reader_that_goes_away(store_path: Path) -> None:
    with Queue(store_path) as queue:
        queue.put_many(["x" * 100] * 5000)
    for more in ([], ["--json"]):
        command = [*COMMAND, "jobs", str(store_path), "default", "--limit", "5000", *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        assert (process.returncode, errors) == (Code.CLOSED_PIPE, b"")


def test_a_reader_that_was_never_there(store: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [*COMMAND, "stats", store], stdout=writing, stderr=subprocess.PIPE, timeout=WATCHDOG
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (Code.CLOSED_PIPE, b"")


@pytest.mark.contract("CLI-05")
def test_ctrl_c_while_it_waits_for_the_store(store: Path) -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDING, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holding:
        assert holding.stdout is not None
        holding.stdout.readline()
        process = subprocess.Popen([*COMMAND, "check", store], stderr=subprocess.PIPE)
        with process:
            wait_for_lock(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            errors = process.stderr.read()
            process.wait(WATCHDOG)
        holding.kill()
    assert (process.returncode, errors.strip()) == (Code.INTERRUPTED, b"")


def wait_for_lock(pid: int) -> None:
    """Until the process waits for a file's lock, as the kernel lists it."""
    deadline = time.monotonic() + WATCHDOG
    while not any(
        " -> " in line and f" {pid} " in line
        for line in Path("/proc/locks").read_text().splitlines()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ctrl_c_ends_the_demo_and_its_processes(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with process:
        assert process.stdout is not None
        while "producer" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WATCHDOG)
    assert (process.returncode, errors.strip()) == (Code.INTERRUPTED, "")
    assert list(tmp_path.iterdir()) == []


def test_the_demo(tmp_path: Path) -> None:
    done = run("demo", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("none ran twice to its end.") == 3
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(*arguments: object, answer: str = "", columns: int = 60) -> tuple[int, str]:
    """The exit code, and all that a terminal was sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS=str(columns), TERM="xterm")
        os.execv(sys.executable, [*COMMAND, *map(str, arguments)])
    printed, answered = b"", False
    deadline = time.monotonic() + WATCHDOG
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        if ready:
            try:
                chunk = os.read(terminal, 1 << 16)
            except OSError:  # the other end was closed
                break
            printed += chunk
        # Again, if nothing happens: a Ctrl-C right between two system calls is one that nobody heard.
        if answer and b"[y/N]" in printed and not (answered and (ready or answer != "\x03")):
            os.write(terminal, answer.encode())
            answered = True
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), printed.decode()


@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
def test_a_table_fits_the_terminal(store_path: Path) -> None:
    with Queue(store_path) as queue:
        queue.put("long " * 100)
        queue.put("evil \x1b[2J")
    code, printed = on_a_terminal("jobs", store_path, "default", columns=70)
    assert printed.startswith("\x1b[1mid")
    assert code == 0
    lines = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in printed.splitlines()]
    assert max(map(len, lines)) <= 70
    assert "…" in lines[1]
    assert "\x1b[2J" not in printed


@pytest.mark.contract("CLI-04")
@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
@pytest.mark.parametrize(
    ("answer", "code", "left"),
    [
        ("y\n", 0, 0),
        ("n\n", Code.REFUSED, 2),
        ("\n", Code.REFUSED, 2),
        ("\x03", Code.INTERRUPTED, 2),
    ],
)
def test_a_terminal_is_asked(answer: str, code: int, left: int, store: Path) -> None:
    ended, printed = on_a_terminal(*("purge", store, "mail", "--state", "pending"), answer=answer)
    assert ended == code, printed
    assert "Remove all 2 pending jobs" in printed
    assert "Traceback" not in printed
    with Queue(store, "mail") as queue:
        assert queue.stats()["pending"] == left


@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
def test_long_work_shows_progress_on_a_terminal(store_path: Path, tmp_path: Path) -> None:
    with Queue(store_path, "[red]mail") as queue:
        queue.put_many(["x" * 1000] * 20_000)
    for arguments, words in {
        ("backup", store_path, tmp_path / "copy"): "Copying to",
        ("check", store_path): "Reading everything",
        ("purge", store_path, "[red]mail", "--state", "pending", "--yes"): "jobs of [red]mail",
        ("compact", store_path): "Copying",
    }.items():
        code, printed = on_a_terminal(*arguments, columns=100)
        assert code == 0, printed
        assert words in printed
        assert "Traceback" not in printed


def on_a_screen(
    *arguments: object, until: bytes, then: Callable[[subprocess.Popen[bytes]], bytes]
) -> tuple[int, bytes]:
    """The exit code, and all that a terminal was sent whose settings are to be as they were.

    When `until` has been sent, `then` is called; what it returns is typed.
    """
    terminal, end = pty.openpty()
    before = termios.tcgetattr(end)
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"},
    )
    ended = os.pidfd_open(process.pid)
    printed, typed = b"", False
    try:
        while True:
            ready, _, _ = select.select([terminal, ended], [], [], WATCHDOG)
            assert ready, printed
            if terminal in ready:
                printed += os.read(terminal, 1 << 16)
                if until in printed and not typed:
                    typed = True
                    os.write(terminal, then(process))
            elif ended in ready:
                break
        assert termios.tcgetattr(end) == before
        return process.wait(), printed
    finally:
        process.kill()
        process.wait()
        for descriptor in (terminal, end, ended):
            os.close(descriptor)


def terminated(process: subprocess.Popen[bytes]) -> bytes:
    process.send_signal(signal.SIGTERM)
    return b""


@pytest.mark.contract("CLI-05", "CLI-11")
@pytest.mark.parametrize(
    ("then", "code"),
    [
        (lambda process: b"q", 0),
        (lambda process: b"\x03", Code.INTERRUPTED),
        (terminated, -signal.SIGTERM),
    ],
    ids=["q", "ctrl-c", "SIGTERM"],
)
def test_the_terminal_after_top(
    then: Callable[[subprocess.Popen[bytes]], bytes], code: int, store: Path
) -> None:
    pytest.importorskip("textual")
    ended, printed = on_a_screen("top", store, until=b"no such mailbox", then=then)
    assert ended == code
    assert b"Traceback" not in printed
    assert printed.rindex(b"\x1b[?1049h") < printed.rindex(b"\x1b[?1049l"), (
        "the screen before is back"
    )
    assert printed.rindex(b"\x1b[?25l") < printed.rindex(b"\x1b[?25h"), "the cursor is seen"


@pytest.mark.contract("CLI-11")
def test_a_terminal_that_goes_away_under_top(store: Path) -> None:
    """With SIGHUP ignored, as nohup does; it would be killed by it."""
    pytest.importorskip("textual")
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", NOHUP, "top", str(store)],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    try:
        os.close(end)
        printed = b""
        while b"no such mailbox" not in printed:
            ready, _, _ = select.select([terminal], [], [], WATCHDOG)
            assert ready, printed
            printed += os.read(terminal, 1 << 16)
        os.close(terminal)
        assert process.wait(WATCHDOG) == -signal.SIGHUP
    finally:
        process.kill()
        process.wait()


@pytest.mark.contract("CLI-11")
def test_a_store_that_is_removed_under_top(store: Path) -> None:
    pytest.importorskip("textual")

    def removed(process: subprocess.Popen[bytes]) -> bytes:
        remove(store)
        return b""

    ended, printed = on_a_screen(
        "top", store, "--interval", 0.1, until=b"no such mailbox", then=removed
    )
    assert ended == Code.NOT_FOUND
    assert b"Traceback" not in printed
    last = printed.rpartition(b"\x1b[?1049l")[2]
    assert b"Error: no store at" in last


@pytest.mark.contract("CLI-05")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_user_who_may_not_write(mode: int) -> None:
    # Below a directory that everybody may enter, unlike pytest's own.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "data"
        with Queue(path, "mail") as queue:
            queue.put(1)
        path.chmod(mode)
        (path / "data.mdb").chmod(0o644)
        (path / "lock").chmod(0o644)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, "stats", path], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (Code.UNUSABLE, "")
        assert "no permission to read and write" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str, store: Path) -> None:
    name = f"{shell}_source"
    done = run(env={**os.environ, "_EQUEUE_COMPLETE": name})
    assert "_EQUEUE_COMPLETE" in done.stdout
    words = f"equeue jobs {store} ma"
    completed = run(
        env={
            **os.environ,
            "_EQUEUE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": "ma" if shell == "fish" else "3",
        }
    )
    assert "mail" in completed.stdout
