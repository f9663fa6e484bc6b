"""A clock that tests move: the engine's, in this process, instead of the machine's."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import equeue_core
from equeue_core import _clock


class Clock:
    """Wall and monotonic time.

    Time passes (`advance`) on both; the wall clock alone is set by an operator (`step`).
    """

    def __init__(self, *, frozen: bool = False) -> None:
        self._wall, self._monotonic = _clock.wall, _clock.monotonic
        self._frozen = (self._wall(), self._monotonic()) if frozen else None
        self._passed = 0.0
        self._stepped = 0.0

    def wall(self) -> float:
        now = self._frozen[0] if self._frozen else self._wall()
        return now + self._passed + self._stepped

    def monotonic(self) -> float:
        now = self._frozen[1] if self._frozen else self._monotonic()
        return now + self._passed

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self._passed += seconds

    def step(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self._stepped += seconds

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the engine's clocks in every module that refers to them."""
        real_wall, real_monotonic = self._wall, self._monotonic
        found = 0
        for module in _modules():
            for name, value in list(vars(module).items()):
                if value is real_wall:
                    patch.setattr(module, name, self.wall)
                    found += 1
                elif value is real_monotonic:
                    patch.setattr(module, name, self.monotonic)
        assert found, "the engine has no wall clock to replace"


def _modules() -> Iterator[object]:
    yield equeue_core
    for info in pkgutil.walk_packages(equeue_core.__path__, "equeue_core."):
        if not info.name.endswith("__main__") and ".cli" not in info.name:
            yield importlib.import_module(info.name)
