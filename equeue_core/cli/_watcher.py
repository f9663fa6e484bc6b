"""The thread that looks at a store again and again, and does there what it is asked to.

It opens the store for each look: `equeue compact` and `restore` find it unused in between, no transaction is
left open, and what is at the path afterwards is what is shown.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from equeue_core import queues as views
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, Failure, code_of, text_of
from equeue_core.cli._open import opened
from equeue_core.cli._sampling import Look, take
from equeue_core.errors import EQueueError

Request = Callable[[Store], Any]
"""What is to be done with the store; it returns what the asker wants to know."""


Asked = tuple[Request, Callable[[Any], None]]
"""A request, and what is called with its result."""


@dataclass(frozen=True)
class Seen:
    """A look was taken."""

    look: Look


@dataclass(frozen=True)
class Trouble:
    """The store could not be looked at.

    Attributes:
        text: why.
        code: the exit code for it.
        lasting: whether it was so at the look before, too, and will not pass by waiting.
    """

    text: str
    code: Code
    lasting: bool


@dataclass(frozen=True)
class Answered:
    """A request was done.

    Attributes:
        then: what the asker wants to be called with the result.
        result: what the request returned.
    """

    then: Callable[[Any], None]
    result: Any


@dataclass(frozen=True)
class Refused:
    """A request was not done.

    Attributes:
        text: why.
    """

    text: str


@dataclass(frozen=True)
class Broken:
    """The thread has ended by an error that nobody has foreseen."""

    error: BaseException


Event = Seen | Trouble | Answered | Refused | Broken


class Watcher:
    """Looks at a store every `interval` seconds, and after each request.

    Parameters:
        path: the store's directory.
        interval: seconds between two looks.
        deliver: is called with each event, in the watcher's thread.
    """

    def __init__(self, path: str, interval: float, deliver: Callable[[Event], Any]) -> None:
        self._path = path
        self._interval = interval
        self._deliver = deliver
        self._requests: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._in_trouble = False
        self._at_work = threading.Lock()
        # It may wait for a lock that another process holds for long, and nothing can interrupt that: the
        # program must be able to end without it.
        self._thread = threading.Thread(target=self._run, name="equeue-watcher", daemon=True)

    def look(self) -> Look:
        """Look at the store now, in the calling thread.

        Raises:
            Failure, EQueueError, OSError: it cannot be used.
        """
        with opened(self._path) as store:
            return take(store)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def ask(self, request: Request, then: Callable[[Any], None]) -> None:
        """Have something done with the store; `then` gets the result by an `Answered`."""
        self._requests.put((request, then))

    def view(self, store: Store, name: str) -> views.QueueView:
        """One queue, for a request.

        Raises:
            QueueNotFound: there is none of this name.
        """
        for found in views.queues(store):
            if found.name == name:
                return found
        raise views.QueueNotFound(f"there is no queue {name!r} any more")

    def stop(self, patience: float = 1.0) -> None:
        """Look no more. Waits for what is being done, but not for longer than `patience` seconds."""
        self._requests.put(None)
        if self._thread.is_alive():
            self._thread.join(patience)

    @contextlib.contextmanager
    def at_rest(self, patience: float = 1.0) -> Iterator[None]:
        """A time in which no look is going on, and nothing else: who stops the process in the middle of one
        would stop all users of the store. Waits for what is going on, but not for longer than `patience`
        seconds: what takes longer is waiting for a lock itself.
        """
        is_mine = self._at_work.acquire(timeout=patience)
        try:
            yield
        finally:
            if is_mine:
                self._at_work.release()

    def _run(self) -> None:
        try:
            while True:
                asked: list[Asked | None] = []
                with contextlib.suppress(queue.Empty):
                    asked.append(self._requests.get(timeout=self._interval))
                if None in asked:
                    return
                with self._at_work:
                    for each in filter(None, asked):
                        self._serve(*each)
                    self._look()
        except BaseException as error:  # noqa: BLE001 - raised where it is seen
            self._deliver(Broken(error))

    def _look(self) -> None:
        try:
            event: Event = Seen(self.look())
            self._in_trouble = False
        except (EQueueError, OSError, Failure) as error:
            text, code = _told(error)
            # Once may be a `restore --replace` that is just going on.
            lasting = self._in_trouble and code is not Code.BUSY
            self._in_trouble = True
            event = Trouble(text, code, lasting)
        self._deliver(event)

    def _serve(self, request: Request, then: Callable[[Any], None]) -> None:
        try:
            with opened(self._path) as store:
                event: Event = Answered(then, request(store))
        except (EQueueError, OSError, Failure, ValueError) as error:
            event = Refused(_told(error)[0])
        self._deliver(event)


def _told(error: Exception) -> tuple[str, Code]:
    if isinstance(error, Failure):
        return error.message, Code(error.exit_code)
    if isinstance(error, (EQueueError, OSError)):
        return text_of(error), code_of(error)
    return str(error), Code.OTHER
