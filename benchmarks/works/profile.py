"""Where the time of one round trip goes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks import _bare, _table, contenders
from benchmarks._blocks import block_seconds
from benchmarks._calls import PYTHON, count_calls, written
from benchmarks._figures import Figure, Result, Unit
from benchmarks._loops import PAYLOAD, fresh_seconds_each, round_trips
from benchmarks._session import Measurement, Session
from benchmarks.contenders import Contender
from benchmarks.works._work import Work

_WHOLE = "the round trip, and its three transactions alone"
_VERBS = "each verb of the round trip"
_PLAIN = "transactions alone, DONE rows kept"
_APART = "transactions alone, DONE rows in a tree of their own"
_NOT_KEPT = "transactions alone, DONE rows not kept"
_WRITEMAP = "transactions alone, DONE rows kept, writemap"
_VARIANTS = {
    _PLAIN: _bare.Options(),
    _APART: _bare.Options(apart=True),
    _NOT_KEPT: _bare.Options(keep=False),
    _WRITEMAP: _bare.Options(writemap=True),
}
_PEERS = (contenders.OFF, contenders.LMDB_QUEUE)
_HEADINGS = ("part", "in one round trip", "each", "together", "share")
_micro = Unit.SECONDS.write


@dataclass(frozen=True)
class _Part:
    """A kind of work outside LMDB: its block, and the C functions whose calls count it."""

    label: str
    block: str
    functions: tuple[str, ...]
    calls_each: int = 1


_PARTS = (
    _Part("kernel lock: flock, lock and unlock", "lock", ("flock",), 2),
    _Part(
        "rows packed and unpacked (struct)",
        "row",
        ("Struct.pack", "Struct.unpack", "Struct.unpack_from"),
    ),
    _Part("the clock read", "clock", ("time", "monotonic")),
    _Part("locks between threads", "gate", ("lock.acquire", "RLock.acquire")),
)


def _run(session: Session) -> Result:
    result = Result()
    if not contenders.installed([contenders.OFF]):
        return result
    figures = result.add(_WHOLE, session.alternate(_measurements(session)))
    result.add(_VERBS, _verb_figures(session))
    with session.opened(contenders.make(contenders.OFF)) as contender:
        round_trips(contender, session.count(5_000, 50))
        calls = count_calls(lambda: round_trips(contender, 1), session.count(200, 20))
        writes = written(lambda: round_trips(contender, 1), session.count(2_000, 20))
    prices = block_seconds(session)
    result.notes = [_parts(figures, prices, calls, writes), _gain(figures)]
    return result


def _measurements(session: Session) -> dict[str, Measurement]:
    count = session.count(10_000, 50)
    found: dict[str, Measurement] = {
        name: fresh_seconds_each(session, round_trips, partial(contenders.make, name), count)
        for name in contenders.installed(_PEERS)
    }
    return found | {
        name: _bare.fresh_round_trip(session, options, count) for name, options in _VARIANTS.items()
    }


def _verb_figures(session: Session) -> list[Figure]:
    """put, get and ack apart, in the same alternation as in a round trip."""
    rounds: dict[str, list[float]] = {"put": [], "get": [], "ack": []}
    for _ in range(session.rounds):
        with session.opened(contenders.make(contenders.OFF)) as contender:
            count = session.count(10_000, 50)
            round_trips(contender, max(1, count // 10))
            for values, seconds in zip(rounds.values(), _stopwatch(contender, count), strict=True):
                values.append(seconds)
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


def _parts(
    figures: Mapping[str, Figure],
    prices: Mapping[str, float],
    calls: Mapping[str, float],
    writes: tuple[float, float] | None,
) -> str:
    """The table of parts; what no part explains is the engine's own Python code."""
    whole, bare = figures[contenders.OFF].median, figures[_PLAIN].median
    lines = []
    for part in _PARTS:
        number = sum(calls.get(name, 0.0) for name in part.functions) / part.calls_each
        lines.append((part.label, number, prices[part.block], number * prices[part.block]))
    lines.append(("payload packed and unpacked (msgpack)", 1.0, prices["codec"], prices["codec"]))
    lmdb = max(0.0, bare - lines[0][3])
    if writes is not None:
        number, size = writes
        pages = number * prices["page"]
        label = f"LMDB: system calls that write pages ({size / 4096:.1f} pages)"
        lines.append((label, number, prices["page"], pages))
        lmdb = max(0.0, lmdb - pages)
    lines.append(("LMDB: the rest of the three transactions", 3.0, lmdb / 3, lmdb))
    rest = max(0.0, whole - sum(line[3] for line in lines))
    python = calls.get(PYTHON, 0.0)
    lines.append(("the engine's Python code, by its functions", python, rest / (python or 1), rest))
    return _table.markdown(
        _HEADINGS,
        (
            (label, f"{number:.3g}", _micro(each), _micro(together), _share(together, whole))
            for label, number, each, together in lines
        ),
    )


def _share(part: float, whole: float) -> str:
    return f"{part / whole * 100:.0f} %"


def _gain(figures: Mapping[str, Figure]) -> str:
    whole, bare = figures[contenders.OFF].median, figures[_PLAIN].median
    peer = figures.get(contenders.LMDB_QUEUE)
    beside = f" lmdb-queue's whole round trip took {peer} in the same rounds." if peer else ""
    return (
        "### What is left to gain\n\n"
        "The transactions alone are the same changes of rows written by hand, under the same "
        "kernel lock, without codec, ownership, waking or checks. They took "
        f"{figures[_PLAIN]} of the engine's {figures[contenders.OFF]}: better Python could save "
        f"at most {_share(max(0.0, whole - bare), whole)} of a round trip.{beside}\n\n"
        "Most of the rest is LMDB writing pages. Through a writable mapping, which is how "
        f"lmdb-queue writes, the same transactions took {figures[_WRITEMAP]}; but a writable "
        "mapping kills the process with SIGBUS when the disk is full, and equeue does not use "
        "one. That difference is the price of an error that can be handled.\n\n"
        f"Not keeping DONE jobs would leave {figures[_NOT_KEPT]}, because the tree stays one page "
        "deep; keeping them in a tree of their own, so that the live rows stay in a shallow one, "
        f"{figures[_APART]} (a deep queue would pay for it: each ack then writes two deep trees). "
        "Where speed counts, batches gain far more than any of these: three "
        "transactions for a hundred jobs instead of three for each."
    )


WORK = Work(
    name="profile",
    title="Where the time of a round trip goes",
    about=(
        'One round trip with `sync="off"` is three transactions. Calls are counted by tracing real '
        "round trips, system calls by the kernel's account of the process; each part is priced by "
        "timing it on its own in the same run. What they do not explain is the engine's Python "
        "code."
    ),
    run=_run,
)
