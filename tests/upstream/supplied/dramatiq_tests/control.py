"""Dramatiq's own broker and backends, which the fixtures are tested with."""

from __future__ import annotations

from pathlib import Path

from dramatiq.brokers.stub import StubBroker
from dramatiq.rate_limits import backends as limits
from dramatiq.results import backends as results


class Memory(StubBroker):
    def __init__(self, path: Path) -> None:
        super().__init__()


class Results(results.StubBackend):
    def __init__(self, path: Path) -> None:
        super().__init__()


class RateLimits(limits.StubBackend):
    def __init__(self, path: Path) -> None:
        super().__init__()
