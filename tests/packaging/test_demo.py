"""What `make demo` runs does run, and says so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging._source import ROOT


def show(module: str, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=directory,
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert list(directory.iterdir()) == [], "the demo left something behind"
    return done.stdout


@pytest.mark.contract("OWN-01", "DRW-03")
@pytest.mark.parametrize("module", ["equeue_core.demo", "equeue_dramatiq.demo", "equeue_rq.demo"])
def test_the_demo_kills_a_worker_and_loses_nothing(module: str, tmp_path: Path) -> None:
    printed = show(module, tmp_path)
    assert "It is killed with SIGKILL" in printed
    assert re.search(r"has taken (the job|its message) over, \d+\.\d ms after", printed)
    assert re.search("(delivered|started) 2 times", printed)
    assert re.search(r"No \w+ was lost, none ran twice to its end\.", printed)
    # Each line is a sentence of the demo's own, with the seconds in front.
    assert all(re.match(r" *\d+\.\d{3} s  \S", line) for line in printed.splitlines())
