"""CPU that consumers use while they wait for a job that does not come."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import contenders
from benchmarks._children import Child
from benchmarks._figures import Result, Row, Target, Unit
from benchmarks._session import Measurement, Session
from benchmarks.works._work import Work

_CONTENDERS = (contenders.OFF, contenders.LMDB_QUEUE)
_CONSUMERS = 8
_TITLE = f"CPU of each of {_CONSUMERS} waiting consumers"


def idle_share(ready: Callable[[], object], name: str, store: Path, seconds: float) -> float:
    """CPU seconds for each second of one blocking wait, all threads of the process."""
    contender = contenders.make(name)
    contender.join(store)
    ready()
    contender.wait(0.1)
    used, start = time.process_time(), time.perf_counter()
    if contender.wait(seconds) is not None:
        raise RuntimeError("a job came from nowhere")
    share = (time.process_time() - used) / (time.perf_counter() - start)
    contender.close()
    return share


def _run(session: Session) -> Result:
    result = Result()
    seconds = max(0.5, 6.0 * session.scale)

    def measurement(name: str) -> Measurement:
        def measure() -> float:
            with session.fresh() as store:
                owner = contenders.make(name)
                owner.open(store)
                owner.put("first")
                owner.ack(owner.get())
                consumers = [Child(idle_share, name, store, seconds) for _ in range(_CONSUMERS)]
                for consumer in consumers:
                    consumer.wait_ready()
                share = statistics.median(float(consumer.result()) for consumer in consumers)
                owner.close()
                return share

        return measure

    names = contenders.installed(_CONTENDERS)
    figures = result.add(
        _TITLE, session.alternate({name: measurement(name) for name in names}, Unit.SHARE)
    )
    if contenders.OFF in figures:
        result.rows = [
            Row(
                f"idle CPU of a waiting consumer ({_CONSUMERS} wait)",
                figures[contenders.OFF],
                figures.get(contenders.LMDB_QUEUE),
                target=Target(0.002, unit=Unit.SHARE),
            )
        ]
    return result


WORK = Work(
    name="idle",
    title="Idle consumers",
    about=(
        f"{_CONSUMERS} processes block in `get()` on an empty queue; the figure is the CPU time "
        "of a whole consumer process for each second of waiting (median of the processes)."
    ),
    run=_run,
)
