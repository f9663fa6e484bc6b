"""A flag that a poller can wait for."""

from __future__ import annotations

import os

from equeue_core._store._bell_descriptor import Descriptor, empty

_ONE = (1).to_bytes(8, "little")


class Flag:
    """An eventfd, or a pipe where there is none."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            flags = os.EFD_NONBLOCK | os.EFD_CLOEXEC
            self._reading = next(map(Descriptor, map(os.eventfd, (0,), (flags,)), ("rb+",)))
            self._writing = self._reading
        else:
            ends = iter(os.pipe, None)
            self._reading, self._writing = next(map(_as_files, ends))

    def fileno(self) -> int:
        """Readable while the flag is up."""
        return self._reading.fileno()

    def up(self) -> None:
        """Raise it; harmless if it is up, or closed."""
        try:
            self._writing.write(_ONE)
        except ValueError:
            pass

    def down(self) -> None:
        """Lower it."""
        empty(self._reading)

    def close(self) -> None:
        """Close."""
        self._reading.close()
        self._writing.close()


def _as_files(ends: tuple[int, int]) -> tuple[Descriptor, Descriptor]:
    reading, writing = map(Descriptor, ends, ("rb", "wb"))
    for file in (reading, writing):
        os.set_blocking(file.fileno(), False)
    return reading, writing
