"""What is compared: products that are installed, or not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import ClassVar


class Product:
    """The base of what is compared.

    Attributes:
        modules: what must be importable.
        distributions: whose versions the report tells.
    """

    modules: ClassVar[tuple[str, ...]]
    distributions: ClassVar[tuple[str, ...]]

    @classmethod
    def installed(cls) -> bool:
        return all(find_spec(name) is not None for name in cls.modules)

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Installed versions by distribution name."""
        found = {}
        for name in cls.distributions:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found
