"""One run of the suite: how often, how much, where; and the alternation of contenders."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks._figures import Figure, Unit
from benchmarks.contenders import Contender

Measurement = Callable[[], float]

V = TypeVar("V")


@dataclass(frozen=True)
class Session:
    """The settings of a run.

    ``rounds`` measurements are made of each contender, ``scale`` multiplies every count of
    operations, and every store is made in a fresh directory below ``directory``.
    """

    directory: Path
    rounds: int = 5
    scale: float = 1.0

    def count(self, full: int, least: int = 1) -> int:
        """``full`` operations at the run's scale, but never fewer than ``least``."""
        return max(least, round(full * self.scale))

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """An empty directory that goes away afterwards."""
        path = Path(tempfile.mkdtemp(dir=self.directory))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def opened(self, contender: Contender) -> Iterator[Contender]:
        """The contender on a fresh, empty store."""
        with self.fresh() as path:
            contender.open(path)
            try:
                yield contender
            finally:
                contender.close()

    def alternate(
        self, measurements: Mapping[str, Measurement], unit: Unit = Unit.SECONDS
    ) -> list[Figure]:
        """Measure A B C A B C ..., so that a slow minute of the machine hits all alike."""
        values = self._rounds_of(measurements)
        return [Figure(name, unit, tuple(series)) for name, series in values.items()]

    def alternate_several(
        self,
        measurements: Mapping[str, Callable[[], Mapping[str, float]]],
        unit: Unit = Unit.SECONDS,
    ) -> dict[str, list[Figure]]:
        """The same with measurements that give several values by title; the figures by title."""
        figures: dict[str, list[Figure]] = {}
        for name, rounds in self._rounds_of(measurements).items():
            for title in rounds[0]:
                series = tuple(each[title] for each in rounds)
                figures.setdefault(title, []).append(Figure(name, unit, series))
        return figures

    def _rounds_of(self, measurements: Mapping[str, Callable[[], V]]) -> dict[str, list[V]]:
        values: dict[str, list[V]] = {name: [] for name in measurements}
        for number in range(self.rounds):
            for name, measure in measurements.items():
                _progress(f"round {number + 1}/{self.rounds}: {name}")
                # The garbage of one contender must not be collected at another's expense.
                gc.collect()
                values[name].append(measure())
        _progress("")
        return values


def settle(directory: Path) -> None:
    """Flush the files of a store, so that write-back of its filling disturbs no measurement."""
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
