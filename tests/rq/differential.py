"""The same commands to a real server and to a store, and their answers compared.

A test has a `Pair` (the fixture ``pair``) and gives it steps: `Pair.run([[b"SET", b"k", b"v"], ...])`,
or text with one command a line (`Pair.run_text`). A step for the second client of each side is
`Second([...])`. Strategies of random commands are made of `line`, `some`, `maybe` and pools of words;
those of each family are in a module ``families_*.py``.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from equeue_core.storage import Txn
from equeue_rq._commands._table import Several
from equeue_rq._dispatch import execute, execute_all
from equeue_rq._keyspace import DATABASES, Keyspace
from equeue_rq._messages import CommandError
from equeue_rq._replies import Members, Pairs, Status, to_resp2
from equeue_rq._session import Session

Words = list[bytes]

_ANSWER_LIMIT = 60.0
"""Seconds within which the server has to answer."""

_CLOCK_SLACK = 60.0
"""Seconds that answers may differ in what depends on the time at which they were made."""


class Second(list[bytes]):
    """A command for the second client of each side."""


class Same:
    """Answers in a form that compares: error, status, map and set are marked as such."""

    @staticmethod
    def error(text: str) -> tuple[str, str]:
        return "error", text

    @staticmethod
    def status(text: bytes) -> tuple[str, bytes]:
        return "status", bytes(text)

    @staticmethod
    def map(pairs: Iterable[Sequence[Any]]) -> tuple[str, list[Any]]:
        return "map", sorted(([*pair] for pair in pairs), key=repr)

    @staticmethod
    def set(members: Iterable[Any]) -> tuple[str, list[Any]]:
        return "set", sorted(members, key=repr)

    @staticmethod
    def double(text: bytes) -> tuple[str, float]:
        return "double", float(text)


class ServerClient:
    """A connection to the real server."""

    def __init__(self, port: int, protocol: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _ANSWER_LIMIT)
        self._file = self._socket.makefile("rb")
        self.protocol = protocol
        self.call([b"HELLO", b"%d" % protocol])

    def call(self, words: Words) -> Any:
        """The answer to a command, in a form that compares."""
        return self.call_all([words])[0]

    def call_all(self, commands: list[Words]) -> list[Any]:
        """The answers to commands that are sent at once."""
        self._socket.sendall(b"".join(map(_packed, commands)))
        return [self._read() for _ in commands]

    def _read(self) -> Any:
        line = self._file.readline()
        assert line.endswith(b"\r\n"), f"the server said {line!r}"
        kind, rest = line[:1], line[1:-2]
        if kind in (b"$", b"="):
            return None if rest == b"-1" else self._file.read(int(rest) + 2)[:-2]
        if kind in (b"*", b">"):
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        if kind == b"%":
            return Same.map([(self._read(), self._read()) for _ in range(int(rest))])
        if kind == b"~":
            return Same.set([self._read() for _ in range(int(rest))])
        plain = {b"+": Same.status, b":": int, b",": Same.double, b"#": b"t".__eq__}
        if kind == b"-":
            return Same.error(rest.decode(errors="replace"))
        return None if kind == b"_" else plain[kind](rest)

    def reset(self) -> None:
        """Delete all keys."""
        self.call([b"FLUSHALL"])

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def _packed(words: Words) -> bytes:
    lines = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join([b"*%d\r\n" % len(words), *lines])


class StoreClient:
    """A connection to a store."""

    def __init__(self, path: Path, protocol: int) -> None:
        self.session = Session(path, sync="off")
        self.session.protocol = self.protocol = protocol

    def call(self, words: Words) -> Any:
        """The answer to a command, in a form that compares."""
        try:
            reply = execute(self.session, words)
        except CommandError as error:
            reply = error
        return self._given(reply.replies[0] if isinstance(reply, Several) else reply)

    def call_all(self, commands: list[Words]) -> list[Any]:
        """The answers to commands that are sent at once."""
        found = execute_all(self.session, commands)
        return [self._given(reply) for replies in found for reply in replies]

    def _given(self, reply: Any) -> Any:
        return self._same(to_resp2(reply) if self.protocol == 2 else reply)

    def _same(self, reply: Any) -> Any:
        if isinstance(reply, CommandError):
            return Same.error(str(reply))
        if isinstance(reply, Status):
            return Same.status(reply)
        if isinstance(reply, float):
            return "double", reply
        if isinstance(reply, (dict, Pairs)):
            pairs = reply.items() if isinstance(reply, dict) else reply
            return Same.map([(self._same(key), self._same(value)) for key, value in pairs])
        if isinstance(reply, (Members, set, frozenset)):
            return Same.set(self._same(each) for each in reply)
        return [self._same(each) for each in reply] if isinstance(reply, list) else reply

    def reset(self) -> None:
        """Delete all keys."""
        self.session.space.write(self._delete_all)

    def _delete_all(self, txn: Txn) -> None:
        for number in range(DATABASES):
            db = Keyspace(txn, self.session.space, number, 0, True)
            for meta in db.all():
                db.delete(meta)

    def close(self) -> None:
        self.session.close()


class Pair:
    """The two sides.

    Parameters:
        servers, stores: the clients of each.
    """

    def __init__(self, servers: Sequence[ServerClient], stores: Sequence[StoreClient]) -> None:
        self.servers = servers
        self.stores = stores

    def reset(self) -> None:
        """Delete all keys on both sides, and end transactions that were begun."""
        self._end_transactions()
        self.servers[0].reset()
        self.stores[0].reset()

    def _end_transactions(self) -> None:
        for client in (*self.servers, *self.stores):
            client.call([b"DISCARD"])
            client.call([b"UNWATCH"])

    def run(self, steps: Iterable[Words]) -> None:
        """Take each step on both sides, and compare the answers; then all that is in the keys."""
        talk = _Talk()
        for words in steps:
            which = int(isinstance(words, Second))
            wanted = _answer(self.servers[which], words)
            talk.compare(which, words, wanted, _answer(self.stores[which], words))
        self._compare_all(talk)

    def run_pipelines(self, pipelines: Iterable[list[Words]]) -> None:
        """The same with many commands sent at once."""
        talk = _Talk()
        for commands in pipelines:
            wanted, got = self.servers[0].call_all(commands), self.stores[0].call_all(commands)
            assert len(wanted) == len(got)
            for words, *pair in zip(commands, wanted, got, strict=True):
                name = words[0].upper()
                talk.compare(0, words, *(_ordered(name, each) for each in pair))
        self._compare_all(talk)

    def run_text(self, text: str) -> None:
        """The same with one command a line, its words quoted as for a shell."""
        lines = (shlex.split(line, comments=True) for line in text.splitlines())
        self.run([[word.encode() for word in words] for words in lines if words])

    def _compare_all(self, talk: _Talk) -> None:
        self._end_transactions()
        after = "\n".join(talk.taken)
        names = self.servers[0].call([b"KEYS", b"*"])
        found = self.stores[0].call([b"KEYS", b"*"])
        assert sorted(found) == sorted(names), after
        for name in names:
            kind = self.servers[0].call([b"TYPE", name])
            for words in ([b"TYPE", name], [b"PTTL", name], *_reading(kind[1], name)):
                wanted, got = _answer(self.servers[0], words), _answer(self.stores[0], words)
                assert _agree(words, wanted, got), f"{words!r}: {wanted!r} {got!r} after\n{after}"


class _Talk:
    """What was said, to be shown with a difference."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self._queued: tuple[list[Words], list[Words]] = ([], [])

    def compare(self, which: int, words: Words, wanted: Any, got: Any) -> None:
        """Assert that two answers are the same.

        Parameters:
            which: whether the second client spoke.
        """
        self.taken.append(("second: " if which else "") + " ".join(map(_shown, words)))
        queued = self._queued[which]
        if words and words[0].upper() in (b"EXEC", b"DISCARD"):
            same = _agree_all(queued, wanted, got)
            queued.clear()
        else:
            same = _agree(words, wanted, got)
            if wanted == _QUEUED:
                queued.append(words)
        answers = [f"the server: {wanted!r}", f"the store:  {got!r}"]
        assert same, "\n".join(["after", *self.taken, *answers])


def _reading(kind: bytes, name: bytes) -> list[Words]:
    """Commands that show all of a key."""
    return {
        b"string": [[b"GET", name]],
        b"list": [[b"LRANGE", name, b"0", b"-1"], [b"LLEN", name], [b"LINDEX", name, b"-1"]],
        b"hash": [[b"HGETALL", name], [b"HLEN", name]],
        b"set": [[b"SMEMBERS", name], [b"SCARD", name]],
        b"zset": [[b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"], [b"ZCARD", name]],
        b"stream": [[b"XRANGE", name, b"-", b"+"], [b"XLEN", name]],
    }[kind]


_QUEUED = Same.status(b"QUEUED")

_SCANS = {b"SCAN": 1, b"HSCAN": 2, b"SSCAN": 2, b"ZSCAN": 2}
"""Where the cursor is. They are repeated until they have shown everything."""

_ANY_ORDER = {
    b"KEYS",
    b"HKEYS",
    b"HVALS",
    b"SMEMBERS",
    b"SUNION",
    b"SINTER",
    b"SDIFF",
    b"SCAN",
    b"SSCAN",
    b"SPOP",
    b"SRANDMEMBER",
    b"ZRANDMEMBER",
}
_PAIRS = {b"HGETALL", b"HSCAN", b"ZSCAN"}
_TIMES = {
    b"TTL": 1.0,
    b"PTTL": 0.001,
    b"EXPIRETIME": 1.0,
    b"PEXPIRETIME": 0.001,
    b"OBJECT IDLETIME": 1.0,
}
"""What the unit of their answers is, in seconds."""

UNSTABLE = frozenset({*_SCANS, *_ANY_ORDER, *_PAIRS, *_TIMES})
"""Commands whose answers have to be arranged before they compare."""


def _answer(client: ServerClient | StoreClient, words: Words) -> Any:
    name = words[0].upper() if words else b""
    if name in _SCANS:
        return _scan_all(client, words, name)
    return _ordered(name, client.call(words))


def _scan_all(client: ServerClient | StoreClient, words: Words, name: bytes) -> Any:
    found: list[Any] = []
    words = list(words)
    while True:
        reply = client.call(words)
        if not isinstance(reply, list):
            return reply
        found += reply[1]
        words[_SCANS[name]] = reply[0]
        if reply[0] == b"0":
            return _ordered(name, found)


def _ordered(name: bytes, reply: Any) -> Any:
    if not isinstance(reply, list):
        return reply
    if name in _ANY_ORDER:
        return sorted(reply)
    if name in _PAIRS and not len(reply) % 2:
        # A real server has two ways to write a score.
        values = map(float, reply[1::2]) if name == b"ZSCAN" else reply[1::2]
        return sorted(zip(reply[::2], values, strict=True))
    return reply


def _agree(words: Words, wanted: Any, got: Any) -> bool:
    unit = _unit(words)
    if unit is None or type(wanted) is not int or type(got) is not int or min(wanted, got) < 0:
        return bool(wanted == got and type(wanted) is type(got))
    return abs(wanted - got) * unit < _CLOCK_SLACK


def _unit(words: Words) -> float | None:
    name = words[0].upper() if words else b""
    if name == b"OBJECT":
        name += b" " + b"".join(words[1:2]).upper()
    return _TIMES.get(name)


def _agree_all(queued: list[Words], wanted: Any, got: Any) -> bool:
    """The same for what EXEC answers: the answers to the commands since MULTI."""
    if not isinstance(wanted, list) or not isinstance(got, list):
        return bool(wanted == got and type(wanted) is type(got))
    answers = zip(queued, wanted, got, strict=False)
    return len(queued) == len(wanted) == len(got) and all(
        _agree(words, *(_ordered(words[0].upper(), each) for each in pair))
        for words, *pair in answers
    )


def _shown(word: bytes) -> str:
    return repr(word)[1:] if len(word) < 60 else f"<{len(word)} bytes {word[:8]!r}...>"


# Random commands


def line(*parts: str | st.SearchStrategy[Any]) -> st.SearchStrategy[Words]:
    """A command: words as text, and strategies of a word or of several."""
    strategies = [st.just(part.encode()) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map(_flat)


def some(
    strategy: st.SearchStrategy[Any], most: int = 3, least: int = 1
) -> st.SearchStrategy[Words]:
    """Several of a kind."""
    return st.lists(strategy, min_size=least, max_size=most).map(_flat)


def maybe(*parts: str | st.SearchStrategy[Any]) -> st.SearchStrategy[Words]:
    """These words, or nothing."""
    nothing: Words = []
    return st.one_of(st.just(nothing), line(*parts))


def words(text: str) -> st.SearchStrategy[bytes]:
    """One of these words; which are quoted as for a shell. A repeated one is taken more often."""
    return st.sampled_from([word.encode() for word in shlex.split(text)])


def without_scans(commands: st.SearchStrategy[Words]) -> st.SearchStrategy[Words]:
    """Commands whose answers compare when they are not repeated."""
    return commands.filter(lambda words: words[0].upper() not in _SCANS)


def transactions(
    commands: st.SearchStrategy[Words], watched: st.SearchStrategy[bytes]
) -> st.SearchStrategy[list[Words]]:
    """Steps: WATCH, something that the other client does, MULTI, commands, EXEC."""
    commands = without_scans(commands)
    watching = st.one_of(st.just([]), some(watched).map(lambda names: [[b"WATCH", *names]]))
    between = st.lists(commands.map(Second), max_size=1)
    end = words("EXEC EXEC EXEC DISCARD UNWATCH").map(lambda word: [[word]])
    inside = st.lists(commands, max_size=5)
    return st.tuples(watching, between, st.just([[b"MULTI"]]), inside, end).map(
        lambda parts: [step for part in parts for step in part]
    )


def steps(
    commands: st.SearchStrategy[Words], *others: st.SearchStrategy[list[Words]], most: int = 40
) -> st.SearchStrategy[list[Words]]:
    """Commands in a row, with such steps of `others` in between."""
    one = commands.map(lambda words: [words])
    return st.lists(st.one_of(one, one, one, *others), min_size=1, max_size=most).map(
        lambda parts: [step for part in parts for step in part]
    )


def _flat(parts: Iterable[bytes | Words]) -> Words:
    flat: Words = []
    for part in parts:
        flat.extend([part] if isinstance(part, bytes) else part)
    return flat


def keys(names: str) -> st.SearchStrategy[bytes]:
    """The keys of a family; now and then another's, or one that is never there."""
    return words(f"{names} {names} {names} other nothing ''")


INTEGERS = words(
    "0 1 -1 2 -2 3 -3 5 -6 0 1 2 100 -100 9223372036854775807 -9223372036854775808 "
    "9223372036854775808 x '' 1.5 ' 1' +1 01 -0"
)
SMALL = words("0 1 -1 2 -2 3 -3 4 5 0 1 -1 2 -2 x 1.5")
COUNTS = words("1 2 3 10 100 0 -1 x")
FLOATS = words(
    "0 1 -1 0.1 2.5 -3.75 1e3 1e-5 10.50 3.0e0 inf -inf nan x '' 0.30000000000000004 1e17"
)
VALUES = st.one_of(
    words("a b c 0 1 12 -5 3.5 '' abc 'two words' a b c"),
    st.sampled_from([b"\x00\xff\r\n", b"L" * 511, b"L" * 512, b"M" * 700, b"N" * 3000]),
)
"""Values around the sizes at which the store keeps them in another way."""
FIELDS = st.one_of(
    words("f g h i f g '' count"),
    st.sampled_from([b"\x00\r\n", b"F" * 400, b"F" * 401, b"G" * 700]),
)
