"""What Dramatiq's tests import from `tests.common`, a module that its archive lacks."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import dramatiq
import pytest

_Test = TypeVar("_Test", bound=Callable[..., Any])

skip_on_windows = pytest.mark.skipif(platform.system() == "Windows", reason="not on Windows")
skip_on_pypy = pytest.mark.skipif(
    platform.python_implementation() == "PyPy", reason="exceptions cannot be raised in threads"
)

# Connections are never made; these only have to be there.
RABBITMQ_USERNAME = "guest"
RABBITMQ_PASSWORD = "guest"
RABBITMQ_CREDENTIALS = (RABBITMQ_USERNAME, RABBITMQ_PASSWORD)


def skip_in_ci(test: _Test) -> _Test:
    """Slow tests run here everywhere."""
    return test


def skip_unless_rabbit_mq(test: _Test) -> _Test:
    """No server is needed: the broker is ours."""
    return test


@contextmanager
def worker(broker: dramatiq.Broker, **options: Any) -> Iterator[dramatiq.Worker]:
    """A worker that runs during a `with` block."""
    running = dramatiq.Worker(broker, **options)
    running.start()
    try:
        yield running
    finally:
        running.stop()
