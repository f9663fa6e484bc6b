"""Who uses the store now: a place for each client, with a record of it, that its process's death frees.

A place is taken by locking its first byte in the file, as an owner's number is (see `_owners`): the lock
is the truth, and what stands in a place that is not locked means nothing. Nothing here is flushed, and no
transaction is needed, so that coming and going costs microseconds.
"""

from __future__ import annotations

import mmap
import os
import struct
from zlib import crc32

from equeue_core._store import _owner_locks
from equeue_core._store._bell_descriptor import Descriptor, open_file

PLACES = 10_000
"""Clients that can be there at a time."""

RECORD = 1000
"""Bytes of a record at most."""

_HEADER = 4096
_PLACE = 1024
_HEAD = struct.Struct("=II")  # the record's length and checksum
_CALL = struct.Struct("=q")
_CALLED = _PLACE - _CALL.size
"""Where in a place its client is called."""
_CALLS = struct.Struct("=I")
_TRIES = 5
"""How often a record that is being written is read."""
_THE_FILE = "file"


class Place:
    """A client's place. It is given back when the object dies, and is nobody's in a forked child.

    Attributes:
        number: which one, from 0 on.
    """

    __slots__ = ("_cells", "_roster", "number")

    def __init__(self, roster: Roster, cells: memoryview[int], number: int) -> None:
        self._roster: Roster | None = roster
        self._cells = cells
        self.number = number

    def write(self, record: bytes) -> None:
        """Show this record, of `RECORD` bytes at most, in place of the last one.

        Raises:
            OSError: there is no room on the disk.
        """
        if self._roster is not None:
            self._roster.write(self.number, record)

    @property
    def calls(self) -> int:
        """How often anybody was called."""
        return self._cells[0]

    def called(self) -> int:
        """The number with which its client was called last; perhaps a client who sat here before."""
        return 0 if self._roster is None else self._roster.called(self.number)

    def give_back(self) -> None:
        """Leave it; harmless if repeated."""
        roster, self._roster = self._roster, None
        if roster is not None:
            roster.free(self.number)

    def __del__(self) -> None:
        self.give_back()


class Roster:
    """The places of one store, as one process sees them.

    A forked child shares its parent's open file, and with it the locks: call `close` first thing in it.
    """

    def __init__(self, path: str) -> None:
        """Nothing is opened or made before the first use."""
        self.path = path
        self._opened: dict[str, tuple[Descriptor, memoryview[int]]] = {}
        self._own: dict[int, object] = {}

    # This process's places

    def take(self) -> Place:
        """A free place.

        Raises:
            OSError: the file cannot be made.
            BlockingIOError: all are taken.
        """
        file, cells = self._open()
        mine = object()
        for number in range(PLACES):
            # In one step, because of other threads and signal handlers.
            if number in self._own or self._own.setdefault(number, mine) is not mine:
                continue
            try:
                _owner_locks.lock(file.fileno(), _offset(number))
            except BlockingIOError:
                del self._own[number]
                continue
            return Place(self, cells, number)
        raise BlockingIOError(f"all {PLACES} places are taken")

    def free(self, number: int) -> None:
        """Leave a place, if it is this process's."""
        if number in self._own:
            _owner_locks.unlock(self._number(), _offset(number))
            self._own.pop(number, None)

    def write(self, number: int, record: bytes) -> None:
        """See `Place.write`."""
        if number in self._own:
            packed = _HEAD.pack(len(record), crc32(record)) + record
            os.pwrite(self._number(), packed, _offset(number))

    # All of them

    def is_alive(self, number: int) -> bool:
        """Whether somebody has the place."""
        return number in self._own or _owner_locks.is_locked(self._number(), _offset(number))

    def record(self, number: int) -> bytes:
        """What was shown in a place last; empty: nothing yet."""
        for _ in range(_TRIES):
            raw = os.pread(self._number(), _CALLED, _offset(number))
            if len(raw) <= _HEAD.size:
                break
            length, checksum = _HEAD.unpack_from(raw)
            record = raw[_HEAD.size : _HEAD.size + length]
            if crc32(record) == checksum:
                return record
        return b""

    def present(self) -> list[tuple[int, bytes]]:
        """Number and record of every place that somebody has and has shown a record in."""
        size = os.fstat(self._number()).st_size
        number = max(-(-(size - _HEADER) // _PLACE), max(self._own, default=-1) + 1)
        return [(place, self.record(place)) for place in range(number) if self.is_alive(place)]

    def called(self, number: int) -> int:
        """See `Place.called`."""
        raw = os.pread(self._number(), _CALL.size, _offset(number) + _CALLED)
        return int(_CALL.unpack(raw)[0]) if len(raw) == _CALL.size else 0

    def call(self, number: int, message: int) -> None:
        """Leave a number for the client in a place, who sees that `Place.calls` has changed [lock held].

        Raises:
            OSError: there is no room on the disk.
        """
        file, cells = self._open()
        os.pwrite(file.fileno(), _CALL.pack(message), _offset(number) + _CALLED)
        os.pwrite(file.fileno(), _CALLS.pack((cells[0] + 1) & 0xFFFFFFFF), 0)

    # The file

    def close(self) -> None:
        """Close the file, and thereby leave all places; in a forked child they stay the parent's."""
        self._own.clear()
        opened = self._opened.pop(_THE_FILE, None)
        if opened is not None:
            opened[0].close()

    def _number(self) -> int:
        return self._open()[0].fileno()

    def _open(self) -> tuple[Descriptor, memoryview[int]]:
        found = self._opened.get(_THE_FILE)
        if found is None:
            # One, whoever else opens it meanwhile: the locks go with the file that was locked.
            found = self._opened.setdefault(_THE_FILE, _open(self.path))
        return found


def _open(path: str) -> tuple[Descriptor, memoryview[int]]:
    file = open_file(path, os.O_RDWR | os.O_CREAT)
    if os.fstat(file.fileno()).st_size < _HEADER:
        # What is mapped must have its block on the disk: touching a hole in a full one would kill.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, _HEADER)
        else:
            os.pwrite(file.fileno(), bytes(_HEADER), 0)
    # Through a file of its own: the mapping keeps it open as long as anybody looks, and the locks with it.
    with open_file(path, os.O_RDONLY) as header:
        mapped = mmap.mmap(header.fileno(), _HEADER, access=mmap.ACCESS_READ)
    return file, memoryview(mapped).cast("I")


def _offset(number: int) -> int:
    return _HEADER + number * _PLACE
