"""How long a nacked job waits before it runs again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

Backoff = Callable[[int], float]
"""From the number of retries that the job has now spent (1 after its first nack) to seconds of
delay.
"""


def exponential_backoff(
    first: float = 1.0, factor: float = 2.0, maximum: float = 3600.0, jitter: float = 0.5
) -> Backoff:
    """A delay that grows by `factor` with each retry, for a queue's ``backoff``.

    Parameters:
        first: seconds before the first retry.
        factor: what each further delay is multiplied by, at least 1.
        maximum: seconds that no delay exceeds.
        jitter: share of the delay, 0 to 1, that is drawn at random, so that jobs which failed
            together do not come back together. 0.5 gives between half the delay and all of it.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not first >= 0 or not factor >= 1 or not maximum >= 0 or not 0 <= jitter <= 1:
        raise ValueError(
            "exponential_backoff needs first >= 0, factor >= 1, maximum >= 0 and jitter from 0 to 1"
        )

    return _Exponential(first, factor, maximum, jitter)


@dataclass(frozen=True)
class _Exponential:
    """A class and not a closure, so that a queue with it can be pickled."""

    first: float
    factor: float
    maximum: float
    jitter: float

    def __call__(self, retries: int) -> float:
        try:
            full = min(self.maximum, self.first * self.factor ** (retries - 1))
        except OverflowError:
            full = self.maximum
        return full * (1 - self.jitter * random.random())


def as_backoff(value: float | Backoff | None) -> Backoff | None:
    """A queue's ``backoff`` option as a function; None means to retry at once.

    Raises:
        TypeError, ValueError: it is neither None, nor seconds, nor callable.
    """
    if value is cast("object", exponential_backoff):
        raise TypeError("backoff=exponential_backoff lacks its call: backoff=exponential_backoff()")
    if value is None or callable(value):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"backoff must be seconds, a callable or None, not {type(value).__name__}")
    seconds = float(value)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"backoff must be seconds >= 0, a callable or None, not {value!r}")
    return lambda retries: seconds


def delay_of(backoff: Backoff, retries: int) -> tuple[float, str]:
    """The seconds that `backoff` asks for, and what is wrong with it (an empty string: nothing).

    A back-off that fails must not keep the job from being nacked: it then retries at once.
    """
    try:
        delay = float(backoff(retries))
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises
        return 0.0, f"the queue's backoff raised {type(error).__name__}: {error}"
    if not 0 <= delay < math.inf:
        return 0.0, f"the queue's backoff returned {delay}, not seconds >= 0"
    return delay, ""
