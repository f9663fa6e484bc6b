"""The installed package, used as a stranger would.

Not collected by default, since its name has no `test_`: `test_wheel.py` runs it on an unpacked
wheel, and `.ci/run` copies it out of the source tree and runs it in a fresh virtual environment.
EQUEUE_SOURCE names the source tree that the package must not come from.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import equeue_core

PACKAGES = ("equeue_core", "equeue_dramatiq", "equeue_rq")

CONSUMER = """
import sys
from equeue_core import Queue
with Queue(sys.argv[1], "mail").processing(timeout=30) as record:
    print(record.payload["to"])
"""


def location_of(package: str) -> Path:
    """Where a package is, without importing it: the adapters need what may not be installed."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.resolve()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_does_not_come_from_the_source_tree(package: str) -> None:
    location = location_of(package)
    source = Path(os.environ["EQUEUE_SOURCE"]).resolve()
    venv = Path(sys.prefix).resolve()
    assert not location.is_relative_to(source) or (
        venv.is_relative_to(source) and location.is_relative_to(venv)
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_are_told_that_the_package_is_typed(package: str) -> None:
    assert (location_of(package) / "py.typed").is_file()


def test_the_metadata_is_there() -> None:
    metadata = importlib.metadata.metadata("equeue")
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.10"
    assert set(metadata.get_all("Provides-Extra") or ()) == {"all", "cli", "dramatiq", "rq"}


def test_the_command_is_there(tmp_path: Path) -> None:
    """Without its extra it says what to install."""
    done = subprocess.run(
        [sys.executable, "-m", "equeue_core", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    if importlib.util.find_spec("click") and importlib.util.find_spec("rich"):
        assert (done.returncode, done.stdout) == (0, f"equeue {equeue_core.__version__}\n")
    else:
        assert (done.returncode, done.stdout) == (9, "")
        assert "pip install click rich" in done.stderr
    scripts = importlib.metadata.entry_points(group="console_scripts", name="equeue")
    assert {script.value for script in scripts} == {"equeue_core.cli:main"}


def test_put_get_ack(tmp_path: Path) -> None:
    with equeue_core.Store(tmp_path / "data") as store:
        queue = store.queue("mail")
        job_id = queue.put({"to": "hello@example.org"})
        record = queue.get(timeout=0)
        assert (record.job_id, record.payload) == (job_id, {"to": "hello@example.org"})
        record.ack(result="sent")
        assert queue.result(job_id, timeout=0) == "sent"
        counts = queue.stats()
        assert (counts["pending"], counts["running"], counts["done"]) == (0, 0, 1)
        assert store.check().ok


def test_another_process_takes_the_job(tmp_path: Path) -> None:
    with equeue_core.Queue(tmp_path / "data", "mail") as queue:
        queue.put({"to": "hello@example.org"})
        done = subprocess.run(
            [sys.executable, "-c", CONSUMER, str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
        )
        assert (done.stdout, done.stderr) == ("hello@example.org\n", "")
        assert queue.stats()["done"] == 1
