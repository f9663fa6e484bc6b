"""The report of a part in Markdown: its page in docs/ and the plot beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import _plot, _table
from benchmarks._figures import Figure, Result, Row
from benchmarks._parts import Part
from benchmarks.works import Work

_OPENING = """\
# {part.heading}

{part.about}

This page is made by `python -m benchmarks --part {part.name}`; `make bench` makes it and those of the
other parts. Run the command again to replace it.

Each figure is the median of {rounds} rounds. In every round the contenders take turns (A B C, A B
C, ...), each on a fresh store and after a warm-up, so that a slow minute of the machine hits all of
them alike. Read the ratios rather than the figures: those belong to one machine.
"""

_TARGETS = """\
## Targets

Ratios are equeue's time by the peer's ("x the time"; below 1 is better), the peer's time by
equeue's ("x the speed"; above 1 is better), or one throughput by the other. A target that was not
reached in this run says "no".
"""


class Report:
    """Collects the results of a part and writes its page."""

    def __init__(self, part: Part, facts: Mapping[str, str]) -> None:
        self.part = part
        self.facts = facts
        self._results: list[tuple[Work, Result]] = []

    def add(self, work: Work, result: Result) -> None:
        self._results.append((work, result))

    def rows(self) -> list[Row]:
        return [row for _, result in self._results for row in result.rows]

    def write(self, destination: Path) -> None:
        """Write the page, and its plot to ``assets/`` in the same directory."""
        picture = destination.parent / "assets" / f"{destination.stem}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        drawn = _plot.draw(self._figures(), self.part.panels, picture)
        link = f"![Median times and throughputs](assets/{picture.name})" if drawn else ""
        parts = [
            _OPENING.format(part=self.part, rounds=self._rounds()),
            _TARGETS,
            _table.rows_markdown(self.rows()),
            link,
            *(_section(work, result) for work, result in self._results),
            self._machine(),
        ]
        destination.write_text("\n".join(part.rstrip() + "\n" for part in parts if part))

    def _figures(self) -> dict[str, list[Figure]]:
        return {
            title: figures
            for _, result in self._results
            for title, figures in result.figures.items()
        }

    def _rounds(self) -> int:
        return max(
            (len(figure.values) for figures in self._figures().values() for figure in figures),
            default=0,
        )

    def _machine(self) -> str:
        today = datetime.now(timezone.utc).date().isoformat()
        lines = [*self.facts.items(), ("date of the run", today)]
        return "## The machine\n\n" + _table.markdown(("", ""), lines)


def _section(work: Work, result: Result) -> str:
    parts = [f"## {work.title}", work.about]
    for title, figures in result.figures.items():
        if title != work.title:
            parts.append(f"### {title}")
        parts.append(_table.figures_markdown(figures))
    parts += result.notes
    return "\n\n".join(parts) + "\n"
