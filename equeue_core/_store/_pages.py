"""Noticing pages that were overwritten with zeros, before LMDB comes across one.

Where LMDB descends to a page of the wrong kind it reports an error, but where it steps sideways to one it
ends the process by an assertion. Every page of a tree has its number and its kind in its header, so a look
at the headers tells beforehand: 0.4 microseconds a page. It is done at each opening while the trees are
small; when they are large, once after each boot of the machine, because what does such damage (a power cut, a
dying disk) seldom comes without one.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

FEW = 1000
"""Pages of a tree that are looked at whenever the file is opened."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

# The layout of LMDB 0.9 on a little-endian 64-bit machine.
_PAGE = struct.Struct("<QHHH")  # number, padding, kind, end of the node offsets
_NODE = struct.Struct("<HHH")  # of a branch: the child's number, in three parts
_META = struct.Struct("<16xII16x48s48sQQ")  # magic, version, free list, data, last page, id
_TREE = struct.Struct("<4xHHQQ16xQ")  # flags, depth, branch pages, leaf pages, ..., root

_MAGIC = (0xBEEFC0DE, 1)
_PAGE_SIZE_OFFSET = 40
_BRANCH, _LEAF = 1, 2
_NO_ROOT = (1 << 64) - 1

META_SIZE = _META.size
"""Bytes of a meta page that say something."""
META_PAGES = 2
"""The first pages of the file, written in turn: the one with the higher transaction counts."""


class Meta(NamedTuple):
    """A meta page: the two trees' records, the last page of the file, and who wrote it."""

    free: bytes
    main: bytes
    last_page: int
    transaction: int


def read_meta(raw: bytes) -> Meta | None:
    """The meta page that `raw` (`META_SIZE` bytes) is; None if it is none of this format."""
    magic, version, *fields = _META.unpack(raw)
    return Meta(*fields) if (magic, version & 0xFFFF) == _MAGIC else None


def page_size(first: bytes) -> int:
    """The size of a page, as the first meta page has it."""
    return int.from_bytes(first[_PAGE_SIZE_OFFSET : _PAGE_SIZE_OFFSET + 4], "little")


def boot() -> bytes:
    """Names this boot of the machine; empty where it has no name."""
    try:
        with open(_BOOT_ID, "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def overwritten_page(descriptor: int, limit: int | None) -> int | None:
    """The number of a page whose header is not a tree page's although a tree has it; None if all are sound.

    Parameters:
        descriptor: of the data file.
        limit: trees of more pages than this are passed over; None: none are.

    Also None where the file is not what this module can read: then LMDB says so.
    """
    length = os.fstat(descriptor).st_size
    if length < META_SIZE:
        return None
    with mmap.mmap(descriptor, length, access=mmap.ACCESS_READ) as data:
        size = page_size(data[:META_SIZE])
        if size < 512 or size & (size - 1):
            return None
        for root, depth, pages in _trees(data, size):
            if limit is not None and pages > limit:
                continue
            page = _first_wrong(data, size, root, depth)
            if page is not None:
                return page
    return None


def _trees(data: mmap.mmap, size: int) -> Iterator[tuple[int, int, int]]:
    """Root, depth and number of pages of each tree of the newest state."""
    metas = []
    for offset in range(0, META_PAGES * size, size):
        meta = read_meta(data[offset : offset + META_SIZE].ljust(META_SIZE, b"\0"))
        if meta is None:
            return
        metas.append(meta)
    newest = max(metas, key=lambda meta: meta.transaction)
    for raw in (newest.free, newest.main):
        _, depth, branches, leaves, root = _TREE.unpack(raw)
        if root != _NO_ROOT:
            yield root, depth, branches + leaves


def _first_wrong(data: mmap.mmap, size: int, root: int, depth: int) -> int | None:
    level = [root]
    for left in range(depth - 1, -1, -1):
        below: list[int] = []
        for page in level:
            offset = page * size
            if offset + size > len(data):
                return page
            number, _, kind, end = _PAGE.unpack_from(data, offset)
            if number != page or not kind & (_BRANCH if left else _LEAF) or not 16 <= end <= size:
                return page
            if left:
                for (node,) in struct.iter_unpack("<H", data[offset + 16 : offset + end]):
                    if node > size - _NODE.size:
                        return page
                    low, middle, high = _NODE.unpack_from(data, offset + node)
                    below.append(low | middle << 16 | high << 32)
        level = below
    return None
