"""Types that newer versions of ``typing`` have, for the type checker only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    T = TypeVar("T", default=Any)
    """What a queue's payloads are; anything, where nothing is said."""
else:
    from typing import TypeVar

    Self = Any
    T = TypeVar("T")

__all__ = ["Self", "T"]
