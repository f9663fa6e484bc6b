"""Whether middleware of the application's may tell somebody that a message is done before it is acked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dramatiq import Middleware

_BEFORE_THE_ACK = ("after_process_message", "after_skip_message", "before_ack")
_OWN = ("dramatiq", "equeue_dramatiq")


class Audience:
    """Looks through a broker's middleware, again only if it has changed."""

    def __init__(self) -> None:
        self._seen: tuple[Middleware, ...] = ()
        self._listens = False

    def listens(self, middleware: list[Middleware]) -> bool:
        """Whether any but Dramatiq's own listens to a signal between an actor's end and the ack.

        Such a one may tell others, who then look for the result. So it has to be there.
        """
        seen = tuple(middleware)
        if seen != self._seen:
            self._listens = any(map(_overrides, seen))
            self._seen = seen
        return self._listens


def _overrides(middleware: Any) -> bool:
    for signal in _BEFORE_THE_ACK:
        method = getattr(middleware, signal)
        module = getattr(method, "__module__", None) or ""
        if module.partition(".")[0] not in _OWN:
            return True
    return False
