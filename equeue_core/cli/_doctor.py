"""``equeue doctor``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import click

import equeue_core
from equeue_core import queues as views
from equeue_core._examine import Examination, examine
from equeue_core._store import _ballast, _format, _peek
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, code_of, text_of
from equeue_core.cli._open import path_argument, require_store
from equeue_core.cli._output import json_option, print_json, say
from equeue_core.cli._text import moment, safe, size
from equeue_core.errors import EQueueError

_LITTLE = 0.1
"""Of a file system, what is so little that it is said."""


@dataclass(frozen=True)
class Line:
    """One finding.

    Attributes:
        subject: what it is about.
        ok: whether all is well.
        found: how it is.
        advice: what to do; empty if nothing has to be done.
    """

    subject: str
    ok: bool
    found: str
    advice: str = ""


@click.command(short_help="Say what is wrong with a store, and what to do.")
@path_argument
@json_option
@click.pass_context
def doctor(ctx: click.Context, path: str, as_json: bool) -> None:
    """Look at a store and at the machine, and say what to do about what is wrong.

    It reads little, also of a large store; for the data itself there is `equeue check`.
    """
    require_store(path)
    lines = list(_lines(path))
    if as_json:
        print_json([vars(each) for each in lines])
    else:
        for each in lines:
            mark = "LOOK" if not each.ok else "note" if each.advice else "ok  "
            say(f"{mark}  {each.subject:<12} {safe(each.found)}")
            if each.advice:
                say(f"{'':<18} -> {safe(each.advice)}")
    if not all(each.ok for each in lines):
        ctx.exit(Code.PROBLEMS)


def _lines(path: str) -> Iterator[Line]:
    yield Line("path", True, os.path.realpath(path))
    yield from _versions()
    try:
        # Before it is opened, which changes a store of an older format.
        record = _peek.peek(path)
        number = _format.FORMAT_NUMBER if record is None else record["format"]
        if number == _format.FORMAT_NUMBER:
            yield Line("format", True, f"{number}, the present one")
        else:
            yield Line(
                "format",
                False,
                f"{number}, an older one",
                f"if no process of an older release needs it, say equeue compact {path}, and look again",
            )
            return
        with Store(path) as store:
            yield from _of_store(store, examine(store))
    except (EQueueError, OSError) as error:
        code = code_of(error)
        yield Line(
            "opening", False, f"{text_of(error)}", f"exit code {int(code)} of other commands"
        )


def _versions() -> Iterator[Line]:
    names = ["lmdb", "msgpack"]
    sources, missing = views.sources()
    for source in sources:
        names += source.packages
    found = [f"equeue {equeue_core.__version__}", f"Python {platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} of an unknown version")
    yield Line("versions", True, ", ".join(found))
    for name, reason in missing.items():
        yield Line(
            "versions",
            True,
            f"the adapter for {name} is not in use here ({reason})",
            f"to see its queues, install equeue with its extra: {name}",
        )


def _of_store(store: Store, found: Examination) -> Iterator[Line]:
    yield _file_system(found)
    yield _space(found)
    unused = found.file_bytes - found.live_bytes
    text = f"{size(found.file_bytes)}, of which {size(found.live_bytes)} are in use"
    if unused > max(found.live_bytes, 64 << 20):
        yield Line("size", True, text, "to give the rest back to the disk: equeue compact")
    else:
        yield Line("size", True, text)
    yield Line(
        "limit",
        True,
        "the store itself has none but the disk's; each program may set its own (map_size)",
    )
    yield _sync(store.sync)
    yield from _owners(found)
    yield from _queues(store)


def _file_system(found: Examination) -> Line:
    if found.network:
        return Line(
            "file system",
            False,
            f"{found.network}, a network file system",
            "move the store to a local disk: locks and memory maps of several machines are not coherent",
        )
    if found.file_system in ("tmpfs", "ramfs"):
        return Line(
            "file system",
            False,
            f"{found.file_system}, which is in memory",
            "move the store to a disk if it has to survive a restart of the machine",
        )
    return Line("file system", True, f"{found.file_system or 'of unknown type'}, local")


def _space(found: Examination) -> Line:
    share = found.free_bytes / found.disk_bytes if found.disk_bytes else 1.0
    text = f"{size(found.free_bytes)} of {size(found.disk_bytes)} are free"
    if found.free_bytes < 4 * _ballast.SIZE:
        advice = "make room now: jobs are refused, and completing them soon is"
    elif found.free_bytes < found.file_bytes:
        advice = "make room: a backup beside the store, or compact, needs as much as the store may"
    elif share < _LITTLE and found.free_bytes < 1 << 30:
        advice = "make room before it is full"
    else:
        return Line("space", True, text)
    return Line("space", False, text, advice)


def _sync(mode: str) -> Line:
    if mode == "off":
        return Line(
            "sync",
            False,
            "off: a power cut may lose jobs, or damage the store",
            'unless that is meant: Store(path).configure(sync="full"), with no other process on it',
        )
    kept = (
        "a put survives a power cut" if mode == "full" else "a power cut may undo the last commits"
    )
    return Line("sync", True, f"{mode}: {kept}")


def _owners(found: Examination) -> Iterator[Line]:
    live = ", ".join(
        f"{each.pid} on {each.host} since {moment(each.since)}" for each in found.live[:5]
    )
    more = f" and {len(found.live) - 5} more" if len(found.live) > 5 else ""
    yield Line("owners", True, f"{len(found.live)} live: {live}{more}" if live else "none lives")
    if not found.dead:
        return
    dead = ", ".join(f"{each.pid} on {each.host}" for each in found.dead[:5])
    yield Line(
        "owners",
        bool(found.live),
        f"{len(found.dead)} died, and their jobs were not given back yet: {dead}",
        "the next worker that looks gives them back"
        + ("" if found.live else "; start one, none lives"),
    )


def _queues(store: Store) -> Iterator[Line]:
    for view in views.queues(store):
        counts = view.counts()
        if counts["failed"]:
            yield Line(
                "queue",
                True,
                f"{view.name}: {counts['failed']} failed jobs",
                "see why with equeue jobs --state failed; then equeue requeue --all-failed, or equeue purge",
            )
        if view.paused() and counts["pending"]:
            yield Line(
                "queue",
                True,
                f"{view.name} is paused, and {counts['pending']} jobs wait",
                "to go on: equeue resume" if view.kind != "rq" else "to go on: rq resume",
            )


COMMANDS = [doctor]
