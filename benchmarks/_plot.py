"""The plot of a report: panels of medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks._figures import Figure, Unit

_OURS, _PEER = "#1f6f8b", "#b8bec4"
_OUR_NAMES = ("equeue", "LMDBBroker", "LMDBRedis")
_SCALES = {Unit.SECONDS: (1e6, "µs"), Unit.PER_SECOND: (1e-3, "thousands a second")}


def draw(figures: Mapping[str, Sequence[Figure]], titles: Sequence[str], destination: Path) -> bool:
    """Write the SVG, one panel for each title.

    False where matplotlib is missing or nothing of the panels was measured.
    """
    panels = [title for title in titles if figures.get(title)]
    if not panels or find_spec("matplotlib") is None:
        return False
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("svg")
    # A fixed salt and no date: the same figures make the same file.
    matplotlib.rcParams.update({"svg.hashsalt": "equeue", "svg.fonttype": "none", "font.size": 9})
    pyplot: Any = import_module("matplotlib.pyplot")
    canvas, axes = pyplot.subplots(len(panels), 1, figsize=(8, 1.9 * len(panels)), squeeze=False)
    for axis, title in zip(axes[:, 0], panels, strict=True):
        _panel(axis, title, figures[title])
    canvas.tight_layout()
    canvas.savefig(destination, metadata={"Date": None})
    pyplot.close(canvas)
    return True


def _panel(axis: Any, title: str, figures: Sequence[Figure]) -> None:
    factor, unit = _SCALES[figures[0].unit]
    # Bars are stacked from below; the first contender belongs on top.
    shown = list(reversed(figures))
    values = [figure.median * factor for figure in shown]
    names = [figure.contender for figure in shown]
    ours = [name for name in names if name.startswith(_OUR_NAMES)] or names
    colours = [_OURS if name in ours else _PEER for name in names]
    bars = axis.barh(names, values, color=colours)
    if max(values) > 30 * min(values):
        axis.set_xscale("log")
        unit += ", logarithmic"
    axis.bar_label(bars, labels=[str(figure) for figure in shown], padding=3)
    axis.margins(x=0.15)
    axis.set_title(f"{title} ({unit})", loc="left", fontsize=9)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
