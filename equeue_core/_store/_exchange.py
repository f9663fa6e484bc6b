"""Two directories change places in one step."""

from __future__ import annotations

import ctypes
import errno
import os

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # linux/fs.h

_NOT_HERE = (errno.ENOSYS, errno.EINVAL)
"""What a kernel, or a file system, says that cannot do it."""


def exchange(one: str, other: str) -> bool:
    """Give each the other's name, so that neither name is ever missing; False if that cannot be done here.

    Raises:
        OSError: one of them is not there, or cannot be renamed.
    """
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return False
    renameat2.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    if not renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), one, None, other)
