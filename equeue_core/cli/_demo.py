"""``equeue demo``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import click

from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._output import say
from equeue_core.queues import sources


@click.command(short_help="Show that nothing is lost when workers are killed.")
def demo() -> None:
    """Run producers and workers on stores in a temporary directory, and kill some in mid-job.

    What `make demo` runs: the core's demo, and those of the adapters whose libraries are installed.
    """
    modules = ["equeue_core.demo", *(each.demo for each in sources()[0] if each.demo)]
    with tempfile.TemporaryDirectory(prefix="equeue-demo-") as directory:
        for number, module in enumerate(modules):
            if number:
                say("")
            if not _run(module, directory):
                raise Failure(f"the demo {module} did not run as it should", Code.OTHER)


def _run(module: str, directory: str) -> bool:
    """Run a module; whether it ended well. Its processes end with this call, however it ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        env={**os.environ, "TMPDIR": directory},
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is for this process: all of the demo's print a traceback at it.
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            say(line.rstrip("\n"))
        return process.wait() == 0
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.stdout.close()
        process.wait()


COMMANDS = [demo]
