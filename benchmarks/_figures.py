"""Measured figures, the rows that compare two of them, and how both are written."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum


class Unit(Enum):
    """What a figure's number is; each is stored in its base unit."""

    SECONDS = "s"
    PER_SECOND = "1/s"
    BYTES = "B"
    SHARE = "share"

    def write(self, value: float) -> str:
        """The value in the unit a reader wants, with three significant digits."""
        if self is Unit.SECONDS:
            return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"
        if self is Unit.PER_SECOND:
            return f"{value:,.0f}/s"
        if self is Unit.BYTES:
            return f"{value:,.0f} B"
        return f"{value * 100:.3g} %"


@dataclass(frozen=True)
class Figure:
    """One contender's values for one piece of work, one value for each round."""

    contender: str
    unit: Unit
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        return self.unit.write(self.median)

    @property
    def spread(self) -> str:
        return f"{self.unit.write(min(self.values))} to {self.unit.write(max(self.values))}"

    def inverted(self) -> Figure:
        """The throughput of a time for each operation."""
        return Figure(self.contender, Unit.PER_SECOND, tuple(1 / value for value in self.values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Reading(Enum):
    """What the ratio of a row says."""

    TIME = "x the time"
    THROUGHPUT = "x the throughput"
    FASTER = "x the speed"
    SIZE = "x the size"

    def ratio(self, ours: float, peer: float) -> float:
        return peer / ours if self is Reading.FASTER else ours / peer


@dataclass(frozen=True)
class Target:
    """A bound that a row's ratio, or our own value where there is no ratio, has to keep."""

    limit: float
    at_least: bool = False
    unit: Unit | None = None

    def reached(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        limit = self.unit.write(self.limit) if self.unit else f"{self.limit:g} x"
        return f"{'>=' if self.at_least else '<='} {limit}"


@dataclass(frozen=True)
class Row:
    """One line of the table: our figure, beside a peer's where there is one."""

    work: str
    ours: Figure | None
    peer: Figure | None = None
    reading: Reading = Reading.TIME
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        if self.ours is None or self.peer is None:
            return None
        return self.reading.ratio(self.ours.median, self.peer.median)

    @property
    def reached(self) -> bool | None:
        """Whether the target is kept; None where there is none or nothing was measured."""
        if self.target is None or self.ours is None:
            return None
        judged = self.ours.median if self.target.unit else self.ratio
        return None if judged is None else self.target.reached(judged)

    def cells(self) -> tuple[str, ...]:
        """work, equeue, peer, ratio, target, reached."""
        peer = "-" if self.peer is None else f"{self.peer} ({self.peer.contender})"
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f} {self.reading.value}"
        verdict = {True: "yes", False: "no", None: "-"}[self.reached]
        return (
            self.work,
            "not measured" if self.ours is None else str(self.ours),
            peer,
            ratio,
            "-" if self.target is None else str(self.target),
            verdict,
        )


@dataclass
class Result:
    """All that one work yields; ``notes`` are further paragraphs of its section."""

    rows: list[Row] = field(default_factory=list)
    figures: dict[str, list[Figure]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, title: str, figures: Sequence[Figure]) -> dict[str, Figure]:
        """Keep the figures of one comparison; gives them by contender."""
        self.figures.setdefault(title, []).extend(figures)
        return {figure.contender: figure for figure in figures}
