"""The backends that Dramatiq's tests are run on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from equeue_dramatiq import LMDBRateLimiterBackend, LMDBResultBackend

STORES = Path(os.environ["EQUEUE_UPSTREAM_STORES"])
"""Where the brokers and backends that a test makes itself have their stores: it names no directory."""


class Results(LMDBResultBackend):
    """Made with the arguments of Dramatiq's own backends."""

    def __init__(self, path: Path = STORES / "results", **options: Any) -> None:
        super().__init__(path, **options)


RateLimits = LMDBRateLimiterBackend
