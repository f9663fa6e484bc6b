"""Which file system a directory is on: network ones cannot carry a store."""

from __future__ import annotations

import functools
import os

MOUNT_TABLE = "/proc/self/mountinfo"

_NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "9p",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.davfs",
        "davfs",
    ]
)


def network_file_system(directory: str) -> str | None:
    """The type of the network file system that holds `directory`, or None if it is a local one.

    Also None where the platform has no mount table to read.
    """
    kind = _type_once(directory, os.stat(directory).st_dev)
    return kind if kind in _NETWORK else None


@functools.lru_cache(maxsize=64)
def _type_once(directory: str, device: int) -> str | None:
    """The type is looked up once: a forked child that opens the store again need not read the table."""
    return file_system_type(directory)


def file_system_type(directory: str) -> str | None:
    """The file system's type as the mount table names it (``ext4``, ``nfs4``), None if unknown."""
    try:
        with open(MOUNT_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.readlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        # Before " - ": id, parent, device, root, mount point, ...; after it: type, source, options.
        left, _, right = line.partition(" - ")
        point = _unescape(left.split()[4])
        # A later line covers an earlier one at the same point, hence >=.
        if _is_below(directory, point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind


def _is_below(directory: str, point: str) -> bool:
    return directory == point or directory.startswith(point.rstrip(os.sep) + os.sep)


def _unescape(text: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
