"""Values as text: nothing from a payload reaches a terminal as a command to it."""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Categories of characters that a terminal would act on, or not show: control characters, those that
change the direction of text, surrogates.
"""


def safe(text: str, keep: str = "") -> str:
    """The text with an escape for each character that is none to be read, but for those in `keep`."""
    if text.isprintable():
        return text
    return "".join(
        character if character in keep or not _is_hidden(character) else _escape(character)
        for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    return ascii(character)[1:-1]


_DEEPEST = 100
"""Levels of nested data that are shown."""


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON can have it: bytes as text, or as ``{"base64": ...}`` if they are none."""
    if depth > _DEEPEST:
        return "..."
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {_key(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each, depth + 1) for each in value]
    return str(value)


def _key(key: Any) -> str:
    shown = plain(key)
    return shown if isinstance(shown, str) else json.dumps(shown)


def as_json(value: Any, indent: int | None = 2) -> str:
    """JSON of ASCII characters only."""
    return json.dumps(plain(value), indent=indent).replace("\x7f", "\\u007f")


def moment(epoch: float | None, short: bool = False) -> str:
    """A time in the local zone; a short one without what a list has no room for."""
    if not epoch:
        return ""
    try:
        local = datetime.fromtimestamp(epoch).astimezone()
        return f"{local:%Y-%m-%d %H:%M:%S}" if short else local.isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(epoch)


def size(number: float) -> str:
    """Bytes, for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
