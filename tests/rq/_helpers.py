"""What tests of the RQ adapter look at and change without the connection's help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equeue_core.storage import Txn, scan
from equeue_rq._dispatch import execute
from equeue_rq._keyspace import ELEMENT, EXPIRY, GARBAGE, Keyspace, Meta
from equeue_rq._session import Session

Word = bytes | str | int


class Caller:
    """Commands as calls: `call("RPUSH", "l", 1)`."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __call__(self, *words: Word) -> Any:
        return execute(self.session, [as_bytes(word) for word in words])

    def record(self, name: Word) -> Meta:
        """The record of a key, that is there."""

        def look(txn: Txn) -> Meta:
            found = Keyspace(txn, self.session.space, self.session.db, 0, False).find(
                as_bytes(name)
            )
            assert found is not None
            return found

        return self.session.space.read(look)

    def entries(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """All that the store has under a prefix."""
        return self.session.space.read(lambda txn: list(scan(txn, prefix)))

    def left_over(self) -> list[tuple[bytes, bytes]]:
        """Elements, times and garbage: with no keys, there is to be none."""
        return [entry for prefix in (ELEMENT, EXPIRY, GARBAGE) for entry in self.entries(prefix)]

    def scan_all(self, *words: Word, cursor_at: int) -> list[Any]:
        """What a scan shows from its beginning to its end."""
        return list(scan_pages(self, *words, cursor_at=cursor_at))


def scan_pages(
    call: Callable[..., Any],
    *words: Word,
    cursor_at: int,
    between: Callable[[], None] = lambda: None,
) -> list[Any]:
    """The same, and something happens after each page."""
    given = list(words)
    found: list[Any] = []
    while True:
        cursor, page = call(*given)
        found += page
        if cursor == b"0":
            return found
        assert cursor.isdigit(), "clients read it as a number"
        given[cursor_at] = cursor
        between()


def as_bytes(word: Word) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
