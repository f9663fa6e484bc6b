"""Pickled data, shown without running any of it."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any


class Kept(dict[str, Any]):
    """What a serializer was to load, as it is stored.

    A dict, because RQ wants one for a job's meta; and empty, so that RQ does not store it again.
    """

    def __init__(self, raw: bytes) -> None:
        super().__init__()
        self.raw = raw


class KeepingSerializer:
    """A serializer for RQ that loads nothing, whatever the jobs were made with."""

    @staticmethod
    def loads(raw: bytes) -> Kept:
        return Kept(raw)

    @staticmethod
    def dumps(value: Any) -> bytes:
        if isinstance(value, Kept):
            return value.raw
        raise TypeError("this serializer only keeps what is there")


class Stub:
    """Stands for an object of some class."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **options: Any) -> Stub:
        return self

    def append(self, value: Any) -> None:
        """For a list of a class of its own."""

    def add(self, value: Any) -> None:
        """For a set of a class of its own."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """A stub, and never the class: to call that could do anything."""
        return type(f"{module}.{name}", (Stub,), {})


def load(raw: bytes) -> tuple[bool, Any]:
    """Whether the data could be read, and what it is: JSON, or a pickle with stubs for its objects."""
    try:
        return True, json.loads(raw)
    except ValueError:
        pass
    try:
        return True, _Reader(io.BytesIO(raw)).load()
    except Exception:  # noqa: BLE001 - a broken pickle raises anything
        return False, None
