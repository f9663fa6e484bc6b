"""Numbers, times and series in few columns of a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size

from equeue_core.cli._text import safe

_BARS = "▁▂▃▄▅▆▇█"

_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

_SPANS = ((31_536_000.0, "y"), (86400.0, "d"), (3600.0, "h"), (60.0, "m"))


def count(number: float, columns: int = 5) -> str:
    """A whole number in at most so many columns (at least 5): all of it, or rounded down: ``12.3k``."""
    whole = f"{number:,.0f}"
    return whole if len(whole) <= columns else _scaled(number)


def rate(per_second: float) -> str:
    """Jobs per second in at most 5 columns; ``0`` only if there were none."""
    if per_second >= 999.5:
        return count(per_second) if per_second < 9999.5 else _scaled(per_second)
    if per_second >= 99.95:
        return f"{per_second:.0f}"
    if per_second >= 9.995:
        return f"{per_second:.1f}"
    if per_second >= 0.005:
        return f"{per_second:.2f}"
    return "<0.01" if per_second > 0 else "0"


def _scaled(number: float) -> str:
    for unit, name in _LARGE:
        if number >= unit:
            found = number / unit
            digits = 2 if found < 10 else 1 if found < 100 else 0
            # Down: 999,999 are not 1000k.
            return f"{math.floor(found * 10**digits) / 10**digits:.{digits}f}{name}"
    return f"{number:.0f}"


def span(seconds: float | None) -> str:
    """A time span in at most 5 columns; an empty string for None. One below zero, of clocks that differ, is
    none.
    """
    if seconds is None:
        return ""
    seconds = max(0.0, seconds)
    for unit, name in (*_SPANS, (1.0, "s")):
        if seconds >= unit:
            # Down, as a clock shows it.
            found = math.floor(seconds / unit * 10) / 10
            return f"{found:.1f}{name}" if found < 10 else f"{math.floor(found)}{name}"
    return f"{math.floor(seconds * 10) / 10:.1f}s"


def bars(values: Iterable[float], columns: int) -> str:
    """The latest of the values as bars, one column each; the highest of them is the highest bar."""
    latest = list(values)[-columns:]
    highest = max(latest, default=0.0)
    if highest <= 0:
        return (_BARS[0] * len(latest)).rjust(columns)
    steps = len(_BARS) - 1
    # Whatever is not 0 is seen.
    drawn = "".join(_BARS[math.ceil(value / highest * steps)] for value in latest)
    return drawn.rjust(columns)


def fitted(text: str, columns: int) -> str:
    """The text as one line without what a terminal would act on, cut off if it is longer."""
    text = safe(text[: columns * 8])
    return text if cell_len(text) <= columns else set_cell_size(text, max(columns - 1, 0)) + "…"
