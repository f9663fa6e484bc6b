"""Runs one function as a process: ``python -m crash._run module:function arguments``."""

from __future__ import annotations

import faulthandler
import importlib
import signal
import sys


def main() -> None:
    faulthandler.enable()
    # The test asks where a process hangs. (A timer of faulthandler would not survive a fork.)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    module, _, function = sys.argv[1].partition(":")
    getattr(importlib.import_module(module), function)(*sys.argv[2:])


if __name__ == "__main__":
    main()
