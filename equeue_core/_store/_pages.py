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

FEW = 1000
"""Pages of a tree that are looked at whenever the file is opened."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

# The layout of LMDB 0.9 on a little-endian 64-bit machine.
_PAGE = struct.Struct("<QHHH")  # number, padding, kind, end of the node offsets
_NODE = struct.Struct("<HHH")  # of a branch: the child's number, in three parts
_META = struct.Struct("<16xIIQQ 48s48s QQ")  # magic, version, ..., free list, data, last page, id
_TREE = struct.Struct("<4xHHQQ16xQ")  # flags, depth, branch pages, leaf pages, ..., root

_MAGIC = (0xBEEFC0DE, 1)
_PAGE_SIZE_OFFSET = 40
_BRANCH, _LEAF = 1, 2
_NO_ROOT = (1 << 64) - 1


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
    size = os.fstat(descriptor).st_size
    if size < _META.size:
        return None
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as data:
        page_size = int.from_bytes(data[_PAGE_SIZE_OFFSET : _PAGE_SIZE_OFFSET + 4], "little")
        if page_size < 512 or page_size & (page_size - 1):
            return None
        for root, depth, pages in _trees(data, page_size):
            if limit is not None and pages > limit:
                continue
            page = _first_wrong(data, page_size, root, depth)
            if page is not None:
                return page
    return None


def _trees(data: mmap.mmap, page_size: int) -> Iterator[tuple[int, int, int]]:
    """Root, depth and number of pages of each tree of the newest state."""
    newest, trees = -1, (b"", b"")
    for offset in (0, page_size):
        if offset + _META.size > len(data):
            return
        magic, version, _, _, free, main, _, transaction = _META.unpack_from(data, offset)
        if (magic, version & 0xFFFF) != _MAGIC:
            return
        if transaction > newest:
            newest, trees = transaction, (free, main)
    for raw in trees:
        _, depth, branches, leaves, root = _TREE.unpack(raw)
        if root != _NO_ROOT:
            yield root, depth, branches + leaves


def _first_wrong(data: mmap.mmap, page_size: int, root: int, depth: int) -> int | None:
    level = [root]
    for left in range(depth - 1, -1, -1):
        below: list[int] = []
        for page in level:
            offset = page * page_size
            if offset + page_size > len(data):
                return page
            number, _, kind, end = _PAGE.unpack_from(data, offset)
            if (
                number != page
                or not kind & (_BRANCH if left else _LEAF)
                or not 16 <= end <= page_size
            ):
                return page
            if left:
                for (node,) in struct.iter_unpack("<H", data[offset + 16 : offset + end]):
                    if node > page_size - _NODE.size:
                        return page
                    low, middle, high = _NODE.unpack_from(data, offset + node)
                    below.append(low | middle << 16 | high << 32)
        level = below
    return None
