"""Simulated power cuts: the recorded writes up to some moment, the last ones only in part.

Every write to the data file is recorded with its bytes, and every flush. A cut keeps what a flush
had confirmed and, of the sectors written since, any random part. Such a file must open undamaged.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from equeue_core import Queue

from . import _durability, _strace
from ._ledger import every_job
from ._procs import Child

pytestmark = pytest.mark.once

Spawn = Callable[..., Child]
SECTOR = 512


@dataclass
class Write:
    """Bytes on their way to the disk."""

    offset: int
    data: bytes
    ended_at: int


@dataclass
class Disk:
    """A file on a disk with a volatile cache, which writes each sector whole or not at all."""

    kept: bytearray
    cached: list[Write] = field(default_factory=list)

    def write(self, write: Write) -> None:
        offset, data = write.offset, write.data
        while data:
            size = SECTOR - offset % SECTOR
            self.cached.append(Write(offset, data[:size], write.ended_at))
            offset, data = offset + size, data[size:]

    def flush(self, begun_at: int) -> None:
        """What was written before the flush began is safe."""
        for sector in self.cached:
            if sector.ended_at < begun_at:
                _apply(self.kept, sector)
        self.cached = [sector for sector in self.cached if sector.ended_at >= begun_at]

    def after_a_cut(self, rnd: random.Random) -> bytes:
        """What is there afterwards: of the cache nothing, a beginning, a part, or all."""
        part = list(self.cached)
        roll = rnd.random()
        if roll < 0.2:
            part = []
        elif roll < 0.4:
            part = part[: rnd.randrange(len(part) + 1)]
        elif roll < 0.9:
            share = rnd.random()
            part = [sector for sector in part if rnd.random() < share]
        image = bytearray(self.kept)
        for sector in part:
            _apply(image, sector)
        return bytes(image)


def _apply(image: bytearray, sector: Write) -> None:
    end = sector.offset + len(sector.data)
    image.extend(bytes(max(0, end - len(image))))
    image[sector.offset : end] = sector.data


@dataclass
class Run:
    """A recorded run: what happened to the data file, and what returned to the caller, in order."""

    start: bytes
    events: list[tuple[int, str, Any]]

    @classmethod
    def of(cls, calls: list[_strace.Call], start: bytes) -> Run:
        events: list[tuple[int, str, Any]] = []
        position = 0
        for call in calls:
            name = call.file.rpartition("/")[2]
            if name == _strace.MARKS:
                events.append((call.begins, "returned", json.loads(call.data)))
            elif name == "data.mdb" and call.name in _strace.FLUSHES:
                events.append((call.ends, "flush", call.begins))
            elif name == "data.mdb" and call.name == "lseek":
                assert "SEEK_SET" in call.arguments
                position = call.offset
            elif name == "data.mdb" and call.name in _strace.WRITES:
                in_place = call.name.startswith("p")
                write = Write(call.offset if in_place else position, call.data, call.ends)
                position += 0 if in_place else len(write.data)
                events.append((call.begins, "write", write))
            else:
                assert name != "data.mdb" or call.name == "openat", f"cannot replay {call.name}"
        return cls(start, sorted(events, key=lambda event: event[0]))

    @property
    def returned(self) -> list[list[Any]]:
        return [value for _, kind, value in self.events if kind == "returned"]

    def cuts(self, count: int, rnd: random.Random) -> list[tuple[int, bytes]]:
        """Images after random cuts, each with the number of operations that had returned."""
        chosen = sorted(rnd.choices(range(len(self.events)), k=count))
        disk, returned, images = Disk(bytearray(self.start)), 0, []
        for index, (_, kind, value) in enumerate(self.events):
            if kind == "write":
                disk.write(value)
            elif kind == "flush":
                disk.flush(value)
            else:
                returned += 1
            while chosen and chosen[0] == index:
                chosen.pop(0)
                images.append((returned, disk.after_a_cut(rnd)))
        return images


Jobs = dict[int, tuple[str, str]]


def prefixes(returned: list[list[Any]]) -> list[Jobs]:
    """The jobs, with state and payload, after none, one, two ... of the operations."""
    jobs: Jobs = {}
    states = [dict(jobs)]
    for verb, job_id, *payload in returned:
        if verb == "put":
            jobs[job_id] = ("pending", payload[0])
        else:
            state = {"get": "running", "ack": "done", "release": "pending"}[verb]
            jobs[job_id] = (state, jobs[job_id][1])
        states.append(dict(jobs))
    return states


def recorded(
    path: Path, spawn: Spawn, sync: str, *, threads: int, steps: int, made: bool = True
) -> Run:
    """A run on a store that was in use before or, if it was not `made`, on none."""
    _strace.require()
    start = b""
    if made:
        with Queue(path, sync=sync) as queue:
            queue.put("warm up")
            queue.get_nowait().ack()
            queue.purge("done")
        start = (path / "data.mdb").read_bytes()
    trace, marks = path.with_name("trace"), path.with_name(_strace.MARKS)
    strace = _strace.command(trace, data=True)
    spawn(_durability.history, path, marks, sync, threads, steps, prefix=strace).finish()
    run = Run.of(_strace.read(trace), start)
    trace.unlink()
    assert len(run.returned) >= steps
    return run


def reopened(directory: Path, image: bytes) -> Jobs:
    """The jobs in a store whose file is this image. It must be undamaged."""
    directory.mkdir(mode=0o700)
    (directory / "data.mdb").write_bytes(image)
    with Queue(directory, do_recover=False, do_vacuum=False) as queue:
        report = queue.store.check()
        assert report.ok, report.problems
        jobs = {job.job_id: (job.state.value, job.payload) for job in every_job(queue)}
    shutil.rmtree(directory)
    return jobs


CUTS = [
    pytest.param(60, 250, id="short"),
    pytest.param(400, 4000, id="long", marks=pytest.mark.torture),
]


@pytest.mark.parametrize(("steps", "cuts"), CUTS)
@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_cut_undoes_at_most_the_last_commit(
    path: Path, spawn: Spawn, sync: str, steps: int, cuts: int
) -> None:
    run = recorded(path, spawn, sync, threads=1, steps=steps)
    assert check_cuts(run, path, sync, cuts) or sync == "full", (
        "no cut has undone anything: the simulation is too kind"
    )


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_cut_while_the_store_is_made_leaves_one_that_opens(
    path: Path, spawn: Spawn, sync: str
) -> None:
    run = recorded(path, spawn, sync, threads=1, steps=6, made=False)
    check_cuts(run, path, sync, 400)


def check_cuts(run: Run, path: Path, sync: str, cuts: int) -> int:
    """Hold every cut against what had returned before it. Returns how many have undone something."""
    states = prefixes(run.returned)
    undone = 0
    for number, (returned, image) in enumerate(run.cuts(cuts, random.Random(cuts))):
        if not any(image) and not returned:
            continue  # a new file with a length but nothing in it may as well be a lost one
        jobs = reopened(path.with_name(f"cut{number}"), image)
        was_put = returned > 0 and run.returned[returned - 1][0] == "put"
        # In "full" a put that returned is there, and with it all that was before it.
        oldest = returned if sync == "full" and was_put else max(0, returned - 1)
        # What was under way when the power went may be there.
        allowed = states[oldest : returned + 2]
        assert jobs in allowed, f"cut {number} after {returned} operations"
        undone += jobs != states[returned] and jobs == states[oldest]
    return undone


@pytest.mark.parametrize(("steps", "cuts"), CUTS)
def test_every_put_that_returned_to_a_thread_survives(
    path: Path, spawn: Spawn, steps: int, cuts: int
) -> None:
    run = recorded(path, spawn, "full", threads=4, steps=steps)
    for number, (returned, image) in enumerate(run.cuts(cuts, random.Random(cuts))):
        jobs = reopened(path.with_name(f"cut{number}"), image)
        puts = {entry[1]: entry[2] for entry in run.returned[:returned] if entry[0] == "put"}
        there = {job_id: payload for job_id, (_, payload) in jobs.items()}
        assert puts.items() <= there.items(), f"cut {number} after {returned} operations"
