"""The store that a broker or backend is to use, and what the backends keep in it."""

from __future__ import annotations

import os
from typing import Any

from equeue_core import Store
from equeue_core.storage import Space, SpaceId

DEFAULT_PATH = "./data"

_UNSAID = {"sync": None, "map_size": None, "allow_network_fs": False}


def open_store(
    path: str | os.PathLike[str] | Store | None, store: Store | None, **options: Any
) -> Store:
    """The store given, or a new handle (which touches no disk yet) on the directory `path`.

    Raises:
        ValueError: a store is given together with another one, or with options that are its own.
    """
    if path is not None and store is not None:
        raise ValueError("give a path or a store, not both")
    given = path if isinstance(path, Store) else store
    if given is None:
        assert not isinstance(path, Store)
        return Store(DEFAULT_PATH if path is None else path, **options)
    wrong = [name for name, value in options.items() if value is not _UNSAID[name]]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: say this to the Store that you pass, or pass a path")
    return given


class Stored:
    """A backend that keeps something in a store.

    Attributes:
        store: the store.
    """

    store: Store

    def _keep_in(
        self,
        space_id: SpaceId,
        path: str | os.PathLike[str] | Store | None,
        store: Store | None,
        **options: Any,
    ) -> None:
        self.store = open_store(path, store, **options)
        self._owns_store = self.store not in (path, store)
        self._space = Space(self.store, space_id)

    def close(self) -> None:
        """Close the handle; may be called again. Who waits gets `equeue_core.QueueClosed`."""
        self._space.close()
        if self._owns_store:
            self.store.close()


def whole(name: str, value: int, unit: str) -> int:
    """`value`, if it is an int of 0 or more.

    Raises:
        TypeError, ValueError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int ({unit}), not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be 0 or more {unit}, not {value}")
    return value
