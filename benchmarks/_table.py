"""Rows as plain text for a terminal and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks._figures import Figure, Row

HEADINGS = ("work", "equeue", "peer", "ratio", "target", "reached")


def plain(rows: Iterable[Row]) -> str:
    """The rows in aligned columns."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (lines[0], rule, *lines[1:])
    )


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *lines)
    )


def rows_markdown(rows: Iterable[Row]) -> str:
    return markdown(HEADINGS, (row.cells() for row in rows))


def figures_markdown(figures: Iterable[Figure]) -> str:
    return markdown(
        ("contender", "median", "lowest to highest", "rounds"),
        (
            (figure.contender, str(figure), figure.spread, str(len(figure.values)))
            for figure in figures
        ),
    )
