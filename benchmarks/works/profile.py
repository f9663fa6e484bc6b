"""Where the time of one round trip goes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks import _bare, _table, contenders
from benchmarks._blocks import block_seconds
from benchmarks._calls import PYTHON, count_calls, written
from benchmarks._figures import Figure, Result, Unit
from benchmarks._loops import PAYLOAD, round_trips
from benchmarks._session import Measurement, Session
from benchmarks.contenders import Contender
from benchmarks.works._work import Work

_EACH = "each verb of the round trip"
_BARE = "the three transactions alone"
_PLAIN = "pwrite, DONE rows kept"
_APART = "pwrite, DONE rows kept in a tree of their own"
_NOT_KEPT = "pwrite, DONE rows not kept"
_WRITEMAP = "writemap, DONE rows kept"
_VARIANTS = {
    _PLAIN: _bare.Options(),
    _APART: _bare.Options(apart=True),
    _NOT_KEPT: _bare.Options(keep=False),
    _WRITEMAP: _bare.Options(writemap=True),
}
_VERBS = ("put", "get", "ack")
_PART_HEADINGS = ("part", "in one round trip", "each", "together", "share")


@dataclass(frozen=True)
class _Block:
    """A kind of work, the C functions whose calls are its count, and calls for one of it."""

    label: str
    price: str
    functions: tuple[str, ...]
    calls_each: int = 1


_BLOCKS = (
    _Block("kernel lock: flock, lock and unlock", "flock pair", ("flock",), 2),
    _Block(
        "LMDB transaction that rewrites one row: begin, put, commit",
        "transaction",
        ("Transaction.commit",),
    ),
    _Block(
        "LMDB: rows inserted",
        "insert",
        ("Transaction.put", "Transaction.replace", "Cursor.put"),
    ),
    _Block(
        "LMDB: rows deleted",
        "delete",
        ("Transaction.delete", "Transaction.pop", "Cursor.delete", "Cursor.pop"),
    ),
    _Block("LMDB: rows read", "get", ("Transaction.get", "Cursor.get")),
    _Block("LMDB: cursors placed and read", "seek", ("Cursor.set_range", "Cursor.set_key")),
    _Block(
        "packing and unpacking rows (struct)",
        "row",
        ("Struct.pack", "Struct.unpack", "Struct.unpack_from"),
    ),
    _Block("the clock", "clock", ("time", "monotonic", "monotonic_ns", "time_ns")),
    _Block("locks between threads", "gate", ("lock.acquire", "RLock.acquire")),
)


def _run(session: Session) -> Result:
    result = Result()
    if not contenders.installed([contenders.OFF]):
        return result
    result.add(_EACH, _verb_figures(session))
    bare = result.add(
        _BARE,
        session.alternate(
            {name: _bare_measurement(session, options) for name, options in _VARIANTS.items()}
        ),
    )
    with session.opened(contenders.make(contenders.OFF)) as contender:
        round_trips(contender, session.count(5_000, 50))
        calls = count_calls(lambda: round_trips(contender, 1), session.count(200, 20))
        writes = written(lambda: round_trips(contender, 1), session.count(2_000, 20))
    whole = sum(figure.median for figure in result.figures[_EACH])
    prices = block_seconds(session)
    result.notes = [_parts(whole, prices, calls), _system_calls(writes, prices), _gain(whole, bare)]
    return result


def _bare_measurement(session: Session, options: _bare.Options) -> Measurement:
    def measure() -> float:
        count = session.count(10_000, 50)
        with session.fresh() as directory, _bare.opened(directory, options) as bare:
            bare.round_trips(max(1, count // 10))
            start = time.perf_counter()
            bare.round_trips(count)
            return (time.perf_counter() - start) / count

    return measure


def _verb_figures(session: Session) -> list[Figure]:
    """put, get and ack apart, in the same alternation as in a round trip."""
    rounds: dict[str, list[float]] = {verb: [] for verb in _VERBS}
    for _ in range(session.rounds):
        with session.opened(contenders.make(contenders.OFF)) as contender:
            count = session.count(10_000, 50)
            round_trips(contender, max(1, count // 10))
            for verb, seconds in zip(_VERBS, _stopwatch(contender, count), strict=True):
                rounds[verb].append(seconds)
    return [Figure(verb, Unit.SECONDS, tuple(values)) for verb, values in rounds.items()]


def _stopwatch(contender: Contender, count: int) -> tuple[float, float, float]:
    put, get, ack, now = contender.put, contender.get, contender.ack, time.perf_counter
    put_time = get_time = ack_time = 0.0
    for _ in range(count):
        start = now()
        put(PAYLOAD)
        after_put = now()
        item = get()
        after_get = now()
        ack(item)
        put_time += after_put - start
        get_time += after_get - after_put
        ack_time += now() - after_get
    return put_time / count, get_time / count, ack_time / count


def _parts(whole: float, prices: Mapping[str, float], calls: Mapping[str, float]) -> str:
    """The table of parts; what no block explains is the engine's own Python code."""
    write = Unit.SECONDS.write
    lines, explained = [], 0.0
    for block in _BLOCKS:
        number = sum(calls.get(name, 0.0) for name in block.functions) / block.calls_each
        if block.price == "insert":
            # The transaction's own price holds one rewritten row already.
            number = max(0.0, number - calls.get("Transaction.commit", 0.0))
        if not number:
            continue
        price = prices[block.price]
        explained += number * price
        lines.append((block.label, f"{number:.3g}", write(price), number * price))
    codec = prices["codec"]
    lines.append(("msgpack: the payload packed and unpacked", "1", write(codec), codec))
    explained += codec
    python = calls.get(PYTHON, 0.0)
    rest = max(0.0, whole - explained)
    lines.append(
        (f"Python code of the engine and the rest ({python:.0f} calls)", "1", write(rest), rest)
    )
    return _table.markdown(
        _PART_HEADINGS,
        (
            (label, number, each, write(total), Unit.SHARE.write(total / whole))
            for label, number, each, total in lines
        ),
    )


def _system_calls(writes: tuple[float, float] | None, prices: Mapping[str, float]) -> str:
    if writes is None:
        return "This system does not tell how many system calls a process makes."
    calls, size = writes
    price = prices["page write"]
    return (
        f"Of LMDB's part, {calls:.1f} system calls write {size / 4096:.1f} pages of 4 KiB in each "
        f"round trip. Written one by one into the page cache, a page costs "
        f"{Unit.SECONDS.write(price)} here: {Unit.SECONDS.write(calls * price)} together."
    )


def _gain(whole: float, bare: Mapping[str, Figure]) -> str:
    floor = bare[_PLAIN].median
    return (
        "### What is left to gain\n\n"
        f"The three transactions alone, written by hand without codec, ownership, waking or "
        f"checks, take {bare[_PLAIN]}: the engine's own code is at most "
        f"{Unit.SHARE.write(max(0.0, whole - floor) / whole)} of a round trip, and that is all that "
        f"better Python could save. Most of the rest is LMDB writing pages: {bare[_WRITEMAP]} "
        "through a writable mapping, which is how lmdb-queue writes, and which kills the process "
        "with SIGBUS when the disk is full. equeue does not do that, so a single round trip with "
        "nothing flushed cannot be much faster than lmdb-queue's, whatever the engine does.\n\n"
        f"Not keeping DONE jobs would leave {bare[_NOT_KEPT]}; keeping them in a tree of their "
        f"own, so that the live rows stay in a shallow one, {bare[_APART]}. Where speed counts, "
        "batches gain far more than either: one transaction for a hundred jobs instead of three "
        "for each."
    )


WORK = Work(
    name="profile",
    title="Where the time of a round trip goes",
    about=(
        'One round trip with `sync="off"` is three transactions. The parts are counted by '
        "tracing the calls of real round trips and priced by timing each building block on its "
        "own in the same run; what they do not explain is Python code. The sum is the time of "
        "put, get and ack measured one after another."
    ),
    run=_run,
)
