"""Command line: choose, run, print, write the report."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import _machine, _table
from benchmarks._parts import PARTS, Part
from benchmarks._report import Report
from benchmarks._session import Session
from benchmarks.works import Work

_ROOT = Path(__file__).resolve().parent.parent
_STORES = _ROOT / "build" / "benchmarks"
_DOCS = _ROOT / "docs"
_FULL_ROUNDS, _FULL_SCALE = 5, 1.0
_QUICK_ROUNDS, _QUICK_SCALE = 3, 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; 0 when everything could be measured, whatever the figures are."""
    parser = _parser()
    options = parser.parse_args(arguments)
    chosen = [part for part in PARTS if _chosen_works(part, options)]
    if not chosen:
        parser.error("none of the works of --only is in a part of --part")
    if options.output and len(chosen) != 1:
        parser.error("--output takes the works of one part: choose it with --part or --only")
    # Every part runs, also when one before it broke.
    return max([_run(part, options) for part in chosen])


def _chosen_works(part: Part, options: argparse.Namespace) -> list[Work]:
    if options.part and part.name not in options.part:
        return []
    return [work for work in part.works if not options.only or work.name in options.only]


def _run(part: Part, options: argparse.Namespace) -> int:
    """Run what is chosen of a part, print it, and write its page if it is complete."""
    complete = not (options.quick or options.only)
    with _stores(options.directory) as stores:
        session = Session(
            stores,
            options.rounds or (_QUICK_ROUNDS if options.quick else _FULL_ROUNDS),
            options.scale or (_QUICK_SCALE if options.quick else _FULL_SCALE),
        )
        report = Report(part, _machine.facts(stores, part.versions()))
        _warn(report.facts["file system"])
        works = _chosen_works(part, options)
        broken = [work.name for work in works if not _measured(work, session, report)]
    print("\n" + _table.plain(report.rows()))
    if broken:
        print(f"\nbroken: {', '.join(broken)}", file=sys.stderr)
        return 1
    destination = options.output or (_DOCS / part.page if complete else None)
    if destination is not None:
        report.write(destination)
        print(f"\nwritten: {destination}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure equeue beside its peers, alternating between them in each round.",
    )
    parts = [part.name for part in PARTS]
    names = [work.name for part in PARTS for work in part.works]
    parser.add_argument("--quick", action="store_true", help="3 rounds with a fifth of the work")
    parser.add_argument(
        "--part", action="append", choices=parts, metavar="PART", help=", ".join(parts)
    )
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--rounds", type=int, help="rounds of each measurement (5)")
    parser.add_argument("--scale", type=float, help="factor on every count (1.0)")
    parser.add_argument(
        "--directory", type=Path, help="make the stores below this directory (build/benchmarks)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="write the report here; a complete run of a part writes its page in docs/ without being told",
    )
    return parser


@contextmanager
def _stores(chosen: Path | None) -> Iterator[Path]:
    parent = chosen or _STORES
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="run-") as stores:
        yield Path(stores)


def _warn(file_system: str) -> None:
    if file_system in {"tmpfs", "ramfs"}:
        print(
            "warning: the stores are on a file system in memory, where a flush costs nothing; "
            "choose another with --directory",
            file=sys.stderr,
        )


def _measured(work: Work, session: Session, report: Report) -> bool:
    """Run one work; when it breaks, say how and let the others go on."""
    start = time.perf_counter()
    try:
        result = work.run(session)
    except Exception:
        traceback.print_exc()
        return False
    report.add(work, result)
    print(f"\n== {work.title} ({time.perf_counter() - start:.0f} s)")
    for title, figures in result.figures.items():
        print(f"   {title}")
        for figure in figures:
            print(f"      {figure.contender:54} {figure!s:>12}   {figure.spread}")
    for line in result.notes:
        print(f"   {line}")
    return True
