"""How many steps an operation takes in the store."""

from __future__ import annotations

from typing import Any


class Counting:
    """A transaction, or a cursor, that counts what is asked of it."""

    def __init__(self, inner: Any, counter: list[str]) -> None:
        self._inner, self._counter = inner, counter

    def __getattr__(self, name: str) -> Any:
        self._counter.append(name)
        return getattr(self._inner, name)

    def cursor(self) -> Any:
        return Counting(self._inner.cursor(), self._counter)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self._inner.close()
