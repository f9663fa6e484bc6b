"""Single commands of redis-py's client."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks import connections
from benchmarks._children import in_child
from benchmarks._figures import Reading, Result, Row, Unit
from benchmarks._session import Session
from benchmarks.connections import Address, ConnectionContender
from benchmarks.works._work import Work

_TITLE = "commands a second"
_CONTENDERS = (connections.OFF, connections.FULL, connections.REDIS)
_COUNT = 2_000
_FIELDS = {f"field-{number}": "x" * 20 for number in range(17)}
_VALUE = "x" * 100


def _pipeline(client: Any) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(5):
        pipeline.set(f"pipeline-{number}", _VALUE)
        pipeline.get(f"pipeline-{number}")
    pipeline.execute()


COMMANDS: dict[str, Callable[[Any], object]] = {
    "GET": lambda client: client.get("string"),
    "SET": lambda client: client.set("string", _VALUE),
    "HSET of one field": lambda client: client.hset("hash", "field-0", _VALUE),
    "HGETALL of 17 fields": lambda client: client.hgetall("hash"),
    "RPUSH": lambda client: client.rpush("list", _VALUE),
    "LPOP": lambda client: client.lpop("list"),
    "ZADD": lambda client: client.zadd("sorted-set", {"member": time.time()}),
    "a pipeline of 10": _pipeline,
}


def rates(ready: Callable[[], object], name: str, address: Address, count: int) -> dict[str, float]:
    """Each command's throughput, after a tenth as a warm-up."""
    client = connections.make(name).connect(address)
    client.hset("hash", mapping=_FIELDS)
    client.zadd("sorted-set", {f"member-{number}": number for number in range(10)})
    ready()
    found = {}
    for command, run in COMMANDS.items():
        for _ in range(max(1, count // 10)):
            run(client)
        start = time.perf_counter()
        for _ in range(count):
            run(client)
        found[command] = count / (time.perf_counter() - start)
    return found


def _run(session: Session) -> Result:
    result = Result()
    with connections.serving(session, _CONTENDERS) as served:
        found = session.alternate_several(
            {name: _measurement(session, name, served[name]) for name in served}, Unit.PER_SECOND
        )
    for command, series in found.items():
        figures = result.add(f"{_TITLE}, {command}", series)
        if connections.OFF in figures and connections.REDIS in figures:
            ours, peer = figures[connections.OFF], figures[connections.REDIS]
            result.rows.append(Row(f"{command}, off", ours, peer, Reading.THROUGHPUT))
    return result


def _measurement(
    session: Session, name: str, contender: ConnectionContender
) -> Callable[[], dict[str, float]]:
    def measure() -> dict[str, float]:
        with session.fresh() as directory:
            address = contender.place(directory)
            found: dict[str, float] = in_child(rates, name, address, session.count(_COUNT, 10))
            return found

    return measure


WORK = Work(
    name="rq-commands",
    title="Single commands",
    about=(
        "One thread of one process calls redis-py's client, which waits for each answer. The "
        "pipeline has five SET and five GET. "
        'With `sync="full"`, only those commands wait for the disk that bring in work, such as '
        "RPUSH."
    ),
    run=_run,
)
