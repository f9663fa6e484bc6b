"""Waiting for several descriptors: by epoll where there is one, else `selectors`, else naps.

Under gevent the thread must not sleep, only the greenlet: see `GeventPoller`.

A poller's `wait` is exact. The system calls behind it count whole milliseconds and Python rounds
up, so the whole milliseconds are waited for there and the rest in a `select` on the same
descriptors.
"""

from __future__ import annotations

import os
import select
import selectors
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol

from equeue_core._store._gevent import is_patched, original
from equeue_core._store._wait_flag import Flag

KICK = -1
"""Stands among the ready descriptors for a kick."""

NAP = 0.05
"""Seconds between two looks of a poller that cannot be told."""

_FOREVER = -1
_DAY = 24 * 60 * 60 * 1000
_AT_ONCE = 16  # events taken by one call; the others stay ready
_SELECT_LIMIT = 1024  # FD_SETSIZE
_make_epoll = original("select", "epoll")


class Poller(Protocol):
    """What a waiter needs."""

    def add(self, descriptor: int, exclusive: bool = False) -> None:
        """Watch `descriptor`; `exclusive`: each event wakes one of the pollers that sleep on it."""

    def remove(self, descriptor: int) -> None:
        """Watch it no longer; harmless if it is not watched."""

    def wait(self, timeout: float | None) -> list[int]:
        """What is ready, after at most `timeout` seconds; `KICK` stands for a kick."""

    def kick(self) -> None:
        """Make the current or the next `wait` return."""

    def clear(self) -> None:
        """Forget a kick that no `wait` has returned for."""

    def fileno(self) -> int:
        """A descriptor that is readable while something is ready; -1 if the platform has none."""

    def close(self) -> None:
        """Give the descriptors back."""


class _Exact:
    """The part that epoll and the selectors share."""

    def __init__(self) -> None:
        self._flag = Flag()
        self._kicked = False

    def _poll(self, milliseconds: int) -> list[int]:
        raise NotImplementedError

    def _doze(self, seconds: float) -> None:
        raise NotImplementedError

    def wait(self, timeout: float | None) -> list[int]:
        if timeout is None:
            return self._taken(self._poll(_FOREVER))
        if timeout <= 0:
            return self._taken(self._poll(0))
        deadline = monotonic() + timeout
        while timeout > 0:
            whole = int(timeout * 1000)
            if not whole:
                self._doze(timeout)
            ready = self._poll(min(whole, _DAY))
            if ready:
                return self._taken(ready)
            timeout = deadline - monotonic()
        return []

    def _taken(self, ready: list[int]) -> list[int]:
        flag = self._flag.fileno()
        if flag not in ready:
            return ready
        self._kicked = False
        self._flag.down()
        return [KICK, *(descriptor for descriptor in ready if descriptor != flag)]

    def kick(self) -> None:
        self._kicked = True
        self._flag.up()

    def clear(self) -> None:
        if self._kicked:
            self._kicked = False
            self._flag.down()


class EpollPoller(_Exact):
    """Linux."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll: select.epoll = _make_epoll()
        self._epoll.register(self._flag.fileno(), select.EPOLLIN)

    def add(self, descriptor: int, exclusive: bool = False) -> None:
        events = select.EPOLLIN | (select.EPOLLEXCLUSIVE if exclusive else 0)
        try:
            self._epoll.register(descriptor, events)
        except FileExistsError:
            pass

    def remove(self, descriptor: int) -> None:
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass

    def _poll(self, milliseconds: int) -> list[int]:
        # Half a millisecond less, because poll() rounds up.
        timeout = milliseconds / 1000 if milliseconds <= 0 else (milliseconds - 0.5) / 1000
        return [descriptor for descriptor, _ in self._epoll.poll(timeout, _AT_ONCE)]

    def _doze(self, seconds: float) -> None:
        _select_for([self._epoll.fileno()], seconds)

    def fileno(self) -> int:
        return self._epoll.fileno()

    def close(self) -> None:
        self._epoll.close()
        self._flag.close()


class GeventPoller(EpollPoller):
    """epoll, waited for by gevent. A look (`wait(0)`) lets no other greenlet run: it is safe under the
    store's lock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._greenlet = select.poll()  # gevent's
        self._greenlet.register(self._epoll.fileno(), select.POLLIN)

    def _poll(self, milliseconds: int) -> list[int]:
        ready = super()._poll(0)
        while milliseconds and not ready:
            self._greenlet.poll(None if milliseconds < 0 else milliseconds)
            ready = super()._poll(0)
            if milliseconds > 0:
                break
        return ready

    def _doze(self, seconds: float) -> None:
        self._greenlet.poll(seconds * 1000)


class SelectorPoller(_Exact):
    """kqueue or poll. Every poller that sleeps on a descriptor wakes for each event."""

    def __init__(self, make: Callable[[], selectors.BaseSelector] | None = None) -> None:
        super().__init__()
        self._selector = (make or _own_selector)()
        self._selector.register(self._flag.fileno(), selectors.EVENT_READ)

    def add(self, descriptor: int, exclusive: bool = False) -> None:
        try:
            self._selector.register(descriptor, selectors.EVENT_READ)
        except KeyError:
            pass

    def remove(self, descriptor: int) -> None:
        try:
            self._selector.unregister(descriptor)
        except (KeyError, ValueError):
            pass

    def _poll(self, milliseconds: int) -> list[int]:
        timeout = None if milliseconds < 0 else max(0.0, (milliseconds - 0.5) / 1000)
        events = self._selector.select(timeout)
        # A signal ends a selector's wait early and empty; forever means forever.
        while milliseconds < 0 and not events:
            events = self._selector.select(None)
        return [key.fd for key, _ in events]

    def _doze(self, seconds: float) -> None:
        _select_for([key.fd for key in self._selector.get_map().values()], seconds)

    def fileno(self) -> int:
        number = getattr(self._selector, "fileno", None)
        return number() if number is not None else -1

    def close(self) -> None:
        self._selector.close()
        self._flag.close()


class NapPoller:
    """No FIFOs: look again after 1 ms, 2 ms, ... `NAP`."""

    def __init__(self) -> None:
        self._nap = 0.001
        self._flag = threading.Lock()
        self._flag.acquire()

    def add(self, descriptor: int, exclusive: bool = False) -> None:
        """There is nothing to watch."""

    def remove(self, descriptor: int) -> None:
        """There is nothing to watch."""

    def wait(self, timeout: float | None) -> list[int]:
        nap = self._nap if timeout is None else max(0.0, min(self._nap, timeout))
        self._nap = min(2 * self._nap, NAP)
        if self._flag.acquire(timeout=nap):
            return [KICK]
        return [KICK] if timeout is None or timeout > nap else []

    def kick(self) -> None:
        try:
            self._flag.release()
        except RuntimeError:  # kicked already
            pass

    def clear(self) -> None:
        self._flag.acquire(blocking=False)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._nap = 0.001


def _select_for(descriptors: list[int], seconds: float) -> None:
    if max(descriptors) < _SELECT_LIMIT:
        select.select(descriptors, (), (), seconds)
    else:
        sleep(seconds)


def _own_selector() -> selectors.BaseSelector:
    for name in ("KqueueSelector", "PollSelector", "SelectSelector"):
        make = getattr(selectors, name, None)
        if make is not None:
            return make()  # type: ignore[no-any-return]
    raise NotImplementedError


def best_poller() -> Callable[[], Poller]:
    """What this platform can do; the one place that decides it."""
    if not hasattr(os, "mkfifo"):
        return NapPoller
    if _make_epoll is None:
        return SelectorPoller
    return GeventPoller if is_patched("select") else EpollPoller
