"""The store that a broker or backend is to use."""

from __future__ import annotations

import os
from typing import Any

from equeue_core import Store


def open_store(path: str | os.PathLike[str] | Store, store: Store | None, **options: Any) -> Store:
    """The store given, or a new handle (which touches no disk yet) on the directory `path`.

    Raises:
        ValueError: a store is given together with options that are its own.
    """
    given = path if isinstance(path, Store) else store
    if given is None:
        assert not isinstance(path, Store)
        return Store(path, **options)
    wrong = [name for name, value in options.items() if value]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: say this to the Store that you pass, or pass a path")
    return given
