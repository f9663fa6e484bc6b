"""``python -m equeue_core``: the command ``equeue``."""

from __future__ import annotations

import sys

from equeue_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
