"""Threads that wait, and how often the store is looked at meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.helpers import WATCHDOG


def waiting(call: Callable[[], Any]) -> Callable[[], Any]:
    """Call it in a thread that gets time to fall asleep; what it returned or raised, once it did."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(0.05)

    def ended() -> Any:
        thread.join(WATCHDOG)
        assert outcome, "it did not end"
        return outcome[0]

    return ended


def counted_transactions(environment: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the environment's transactions begin, from now on."""
    times: list[float] = []
    transact = environment.transact

    def counted(*arguments: Any, **options: Any) -> Any:
        times.append(time.monotonic())
        return transact(*arguments, **options)

    monkeypatch.setattr(environment, "transact", counted)
    return times
