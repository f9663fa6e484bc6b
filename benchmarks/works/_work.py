"""What one work of the suite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks._figures import Result
from benchmarks._session import Session


@dataclass(frozen=True)
class Work:
    """A named measurement; ``about`` is the paragraph that the report prints above its figures."""

    name: str
    title: str
    about: str
    run: Callable[[Session], Result]
