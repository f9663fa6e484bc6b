"""What ends a command early, and with which exit code."""

from __future__ import annotations

import enum

import click

from equeue_core.cli import MISSING as NOT_INSTALLED
from equeue_core.cli._text import safe
from equeue_core.errors import (
    DuplicateJob,
    EQueueError,
    ForeignStoreError,
    JobNotFound,
    JobStateError,
    NetworkFileSystemError,
    PayloadError,
    QueueCorrupted,
    QueueFull,
    StoreAccessError,
    StoreBusy,
    StoreOptionError,
    StoreRemoved,
    StoreVersionError,
)
from equeue_core.queues import AdapterMissing, NotSupported, QueueNotFound


class Code(enum.IntEnum):
    """The exit codes. Each has a sentence in `MEANINGS`."""

    DONE = 0
    OTHER = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNUSABLE = 5
    BUSY = 6
    NO_ROOM = 7
    PROBLEMS = 8
    MISSING = NOT_INSTALLED
    INTERRUPTED = 130
    CLOSED_PIPE = 141


MEANINGS = {
    Code.DONE: "The command has done what it was told.",
    Code.OTHER: "Something else went wrong; the message says what.",
    Code.USAGE: "The command, an option or a payload cannot be meant.",
    Code.NOT_FOUND: "There is no such store, queue or job.",
    Code.REFUSED: "It was not done: the job's state, its unique key or the kind of queue does not allow "
    "it, or it was not confirmed.",
    Code.UNUSABLE: "The directory cannot be used: no permission, another program's data, a newer or older "
    "format, damage, a network file system.",
    Code.BUSY: "Another process has the store open, or has it for itself.",
    Code.NO_ROOM: "There is no room for it.",
    Code.PROBLEMS: "`check` or `doctor` found something.",
    Code.MISSING: "Something has to be installed first; the message says what.",
    Code.INTERRUPTED: "It was interrupted with Ctrl-C.",
    Code.CLOSED_PIPE: "Who read the output has closed it, as `head` does.",
}

_CODES: dict[type[BaseException], Code] = {
    JobNotFound: Code.NOT_FOUND,
    QueueNotFound: Code.NOT_FOUND,
    JobStateError: Code.REFUSED,
    DuplicateJob: Code.REFUSED,
    NotSupported: Code.REFUSED,
    AdapterMissing: Code.MISSING,
    PayloadError: Code.USAGE,
    QueueFull: Code.NO_ROOM,
    StoreBusy: Code.BUSY,
    StoreAccessError: Code.UNUSABLE,
    StoreVersionError: Code.UNUSABLE,
    StoreOptionError: Code.UNUSABLE,
    StoreRemoved: Code.UNUSABLE,
    ForeignStoreError: Code.UNUSABLE,
    NetworkFileSystemError: Code.UNUSABLE,
    QueueCorrupted: Code.UNUSABLE,
}


def code_of(error: EQueueError | OSError) -> Code:
    """The exit code for an error of the engine."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), Code.OTHER)


def text_of(error: EQueueError | OSError) -> str:
    """What to say of it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if isinstance(error, EQueueError) else _system_error(error)
    return str(error)


def _system_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


class Failure(click.ClickException):
    """Ends the command with a message and a code."""

    def __init__(self, message: str, code: Code) -> None:
        # A queue's name in it, say, may hold anything.
        super().__init__(safe(message))
        self.exit_code = code  # type: ignore[misc]  # of each instance, and click reads it there
