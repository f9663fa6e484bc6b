"""Checking and holding a queue's options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from equeue_core._codec import Codec, MsgpackCodec
from equeue_core._retry import Backoff, as_backoff

NEVER_WIDTH = 1 << 20
"""Seconds: the time bucket of ended jobs for a handle that never vacuums."""


@dataclass(frozen=True)
class QueueOptions:
    """What one handle on a queue was made with; see `Queue` for the meanings."""

    lease_time: float | None
    max_retries: int
    backoff: Backoff | None
    map_size: int | None
    do_recover: bool
    recover_interval: float
    do_vacuum: bool
    vacuum_interval: float
    keep_done: bool
    keep_failed: float | None
    codec: Codec
    width: int
    """Seconds of a time bucket of ended jobs: a 32nd of how long they are kept; 0: they are not."""


def queue_options(
    *,
    lease_time: float | None,
    max_retries: int,
    backoff: float | Backoff | None,
    map_size: int | None,
    do_recover: bool,
    recover_interval: float,
    do_vacuum: bool,
    vacuum_interval: float,
    keep_done: bool,
    keep_failed: float | None,
    codec: Codec | None,
) -> QueueOptions:
    """The options, checked.

    Raises:
        ValueError, TypeError: one of them cannot be meant.
    """
    if lease_time is not None:
        positive("lease_time", lease_time)
    check_retries(max_retries)
    if map_size is not None:
        count("map_size", map_size)
    return QueueOptions(
        lease_time=lease_time,
        max_retries=max_retries,
        backoff=as_backoff(backoff),
        map_size=map_size,
        do_recover=bool(do_recover),
        recover_interval=positive("recover_interval", recover_interval),
        do_vacuum=bool(do_vacuum),
        vacuum_interval=positive("vacuum_interval", vacuum_interval),
        keep_done=bool(keep_done),
        keep_failed=None if keep_failed is None else seconds("keep_failed", keep_failed),
        codec=MsgpackCodec() if codec is None else _check_codec(codec),
        width=_bucket_width(vacuum_interval if do_vacuum else None) if keep_done else 0,
    )


def _bucket_width(kept: float | None) -> int:
    return NEVER_WIDTH if kept is None else max(1, int(kept / 32))


def _check_codec(codec: Codec) -> Codec:
    # A str has an encode, too, for something else.
    if (
        isinstance(codec, (str, bytes))
        or not callable(getattr(codec, "encode", None))
        or not callable(getattr(codec, "decode", None))
    ):
        raise TypeError(
            f"codec must have encode(value) -> bytes and decode(bytes) -> value, {codec!r} has not"
        )
    return codec


def count(name: str, value: int) -> int:
    """`value`, if it is an int greater than 0."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value


def positive(name: str, value: float) -> float:
    """`value`, if it is a finite number of seconds greater than 0."""
    if not 0 < _number(name, value) < math.inf:
        raise ValueError(f"{name} must be seconds > 0, not {value!r}")
    return float(value)


def seconds(name: str, value: float) -> float:
    """`value`, if it is a finite number of seconds, 0 or more."""
    if not 0 <= _number(name, value) < math.inf:
        raise ValueError(f"{name} must be seconds >= 0, not {value!r}")
    return float(value)


def timeout_seconds(value: float | None) -> float | None:
    """A timeout: None, or seconds, 0 or more."""
    if value is None:
        return None
    if not _number("timeout", value) >= 0:
        raise ValueError(f"timeout must be seconds >= 0 or None, not {value!r}")
    return None if value == math.inf else float(value)


def check_retries(value: int) -> int:
    """`value`, if it can be a number of retries."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"max_retries must be an int, not {type(value).__name__}")
    if not 0 <= value < 1 << 31:
        raise ValueError(f"max_retries must be >= 0, not {value}")
    return value


def check_job_id(value: int) -> int:
    """`value`, if it can be a job's id. To be asked before a transaction, which others may share."""
    if not isinstance(value, int):
        raise TypeError(f"a job id is an int, not {type(value).__name__}")
    return value


def check_priority(value: float) -> float:
    """`value` as a finite float."""
    number = float(_number("priority", value))
    if not math.isfinite(number):
        raise ValueError(f"priority must be a finite number, not {value!r}")
    return number


def due_time(now: float, delay: float | None, run_at: datetime | float | None) -> float | None:
    """When a job is due, in epoch seconds, from the two ways to say it; None for at once.

    A naive datetime means local time, as ``datetime.timestamp`` has it.

    Raises:
        ValueError: both are given, or one is no moment.
    """
    if delay is not None and run_at is not None:
        raise ValueError("give delay or run_at, not both")
    if delay is not None:
        return now + seconds("delay", delay)
    if isinstance(run_at, datetime):
        return run_at.timestamp()
    if run_at is None:
        return None
    if isinstance(run_at, bool) or not isinstance(run_at, (int, float)):
        raise TypeError(f"run_at must be a datetime or epoch seconds, not {type(run_at).__name__}")
    if not math.isfinite(_number("run_at", run_at)):
        raise ValueError(f"run_at must be a datetime or epoch seconds, not {run_at!r}")
    return run_at


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} is too large") from error
