"""The verbs that every contender offers to the works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks._product import Product


class Contender(Product, ABC):
    """One product, or a baseline, on one store.

    ``open`` binds ``put``, ``get`` and ``ack`` to the product's own functions wherever their
    shapes allow it, so that the loops time the product and not its adapter. ``get`` is
    called with a job at hand.
    """

    put: Callable[[str], object]
    get: Callable[[], Any]
    ack: Callable[[Any], object]

    @abstractmethod
    def open(self, directory: Path) -> None:
        """Make a new store in the directory, or open the one that is there."""

    def join(self, directory: Path) -> None:
        """Open, in another process, the store that ``open`` made."""
        self.open(directory)

    @abstractmethod
    def close(self) -> None: ...

    def wait(self, seconds: float) -> Any | None:
        """Block until there is a job and claim it; None when there was none in time."""
        raise NotImplementedError(f"{type(self).__name__} cannot wait for a job")

    def text(self, item: Any) -> str:
        """The payload of what ``get`` returned."""
        return str(item.payload)

    def put_many(self, payloads: Sequence[str]) -> None:
        for payload in payloads:
            self.put(payload)

    def get_many(self, count: int) -> list[Any]:
        return [self.get() for _ in range(count)]

    def ack_many(self, items: Sequence[Any]) -> None:
        for item in items:
            self.ack(item)

    @classmethod
    def load(cls) -> Any:
        """Import what the product needs; gives its first module, untyped."""
        first, *others = cls.modules
        for name in others:
            import_module(name)
        return import_module(first)
