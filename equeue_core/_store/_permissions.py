"""Whose files a store's files are: the user's who owns its directory, also when root made them.

A single command run as root must not lock the application out of its own store.
"""

from __future__ import annotations

import os

_is_root = hasattr(os, "geteuid") and os.geteuid() == 0


def hand_over(path: str) -> None:
    """Give a file that root has made to the owner of the directory that it is in."""
    if not _is_root or os.geteuid() != 0:
        return
    owner = os.stat(os.path.dirname(path))
    state = os.lstat(path)
    if state.st_uid != owner.st_uid and state.st_uid == 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def make_directory(path: str) -> None:
    """The directory at `path`, made with mode 0700 if missing."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    hand_over(path)
