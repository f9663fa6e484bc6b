"""Commands that look: they change nothing."""

from __future__ import annotations

import os
from typing import Any

import click

from equeue_core import queues as views
from equeue_core._store import _files
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._open import opened, opened_queue, path_argument, queue_argument
from equeue_core.cli._output import json_option, print_facts, print_json, print_table
from equeue_core.cli._text import as_json, moment, plain, safe

_SUMMARY = 500
"""Characters of a job's summary in a list."""


def counted(view: views.QueueView) -> dict[str, Any]:
    """What the commands tell of a queue."""
    counts = view.counts()
    return {
        "name": view.name,
        "kind": view.kind,
        "paused": view.paused(),
        "counts": counts,
        "ever_put": view.ever_put(),
    }


@click.command(short_help="Count the jobs of each queue.")
@path_argument
@json_option
def stats(path: str, as_json: bool) -> None:
    """Show how many jobs each queue has, by state.

    `ever put` is how many jobs were ever put in a queue, for those that count it. The jobs of a worker
    that died count as running until the next worker looks.
    """
    with opened(path) as store:
        found = [counted(view) for view in views.queues(store)]
        summary = {"path": os.path.abspath(path), "sync": store.sync, "bytes": _bytes(store)}
    if as_json:
        print_json({**summary, "queues": found})
        return
    states = list(
        dict.fromkeys([*views.STATES, *(name for each in found for name in each["counts"])])
    )
    rows = [
        (
            *(each["counts"].get(state, "") for state in states),
            "" if each["ever_put"] is None else each["ever_put"],
            "yes" if each["paused"] else "",
            each["name"],
        )
        for each in found
    ]
    columns = [*(f"#{state}" for state in states), "#ever put", "paused", "queue"]
    print_table(columns, rows, "" if rows else _no_queues())


def _bytes(store: Store) -> int:
    return os.path.getsize(os.path.join(store.path, _files.DATA))


@click.command(short_help="List the queues.")
@path_argument
@json_option
def queues(path: str, as_json: bool) -> None:
    """List the queues: what kind each is, and what is left to do.

    The queues of Dramatiq are named by their namespace, as in dramatiq:default, those of RQ rq:default,
    or rq@1:default in database 1.
    """
    with opened(path) as store:
        found = [counted(view) for view in views.queues(store)]
    if as_json:
        print_json([{**each, "unfinished": _unfinished(each)} for each in found])
        return
    rows = [
        (
            each["kind"],
            _unfinished(each),
            each["counts"]["failed"],
            "yes" if each["paused"] else "",
            each["name"],
        )
        for each in found
    ]
    columns = ["kind", "#unfinished", "#failed", "paused", "queue"]
    print_table(columns, rows, "" if rows else _no_queues())


def _no_queues() -> str:
    missing = views.sources()[1]
    if not missing:
        return "The store has no queues yet."
    return (
        "The store has no queues yet, as far as can be seen: what the queues of "
        f"{' and '.join(missing)} need is not installed here. See equeue doctor."
    )


def _unfinished(found: dict[str, Any]) -> int:
    ended = ("done", "failed", "cancelled")
    return sum(number for state, number in found["counts"].items() if state not in ended)


@click.command()
@path_argument
@queue_argument
@click.option(
    "--state",
    type=click.Choice([*views.STATES, "deferred", "stopped"]),
    help="Only jobs in this state; deferred and stopped are RQ's. Default: all, state by state.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most."
)
@json_option
def jobs(path: str, queue: str, state: str | None, limit: int, as_json: bool) -> None:
    """List jobs of a queue.

    Pending jobs come in the order in which they will run.
    """
    with opened_queue(path, queue) as view:
        try:
            found = list(view.jobs(state, limit))
        except ValueError as error:
            raise Failure(str(error), Code.USAGE) from error
    if as_json:
        print_json([_job(each) for each in found])
        return
    rows = [
        (each.job_id, each.state, each.details.get("attempts", ""), _when(each), _line(each))
        for each in found
    ]
    print_table(["id", "state", "#attempts", "since", "job"], rows, "There are no such jobs.")


def _when(job: views.JobView) -> str:
    """The time that matters most in its state."""
    names = ("finished_at", "claimed_at", "started_at", "due_at", "enqueued_at")
    return moment(
        next((job.details[name] for name in names if job.details.get(name)), None), short=True
    )


def _line(job: views.JobView) -> str:
    text = job.summary
    if job.errors:
        text = f"{job.errors[-1].message} | {text}"
    return text if len(text) <= _SUMMARY else text[:_SUMMARY] + "..."


def _job(job: views.JobView) -> dict[str, Any]:
    errors = [
        {
            "attempt": error.attempt,
            "at": error.at,
            "message": error.message,
            "traceback": error.traceback,
        }
        for error in job.errors
    ]
    return {
        "id": job.job_id,
        "queue": job.queue,
        "state": job.state,
        "payload": job.payload,
        **job.details,
        "errors": errors,
    }


@click.command(short_help="Show one job.")
@path_argument
@queue_argument
@click.argument("job_id", metavar="ID")
@json_option
def show(path: str, queue: str, job_id: str, as_json: bool) -> None:
    """Show one job: payload, attempts, errors, owner, times.

    Pickled payloads, as RQ has them, are shown without running anything that is in them.
    """
    with opened_queue(path, queue) as view:
        job = view.job(job_id)
    if as_json:
        print_json(_job(job))
        return
    print_facts(facts_of(job))


def facts_of(job: views.JobView) -> list[tuple[str, str]]:
    """All that is known of a job, by name."""
    facts = [("id", job.job_id), ("queue", job.queue), ("state", job.state)]
    facts.append(("payload", _value(job.payload)))
    facts += [
        (name.replace("_", " "), moment(value) if name.endswith("_at") else _value(value))
        for name, value in job.details.items()
        if value is not None
    ]
    for error in job.errors:
        text = f"attempt {error.attempt}, {moment(error.at)}: {error.message}"
        facts.append(("error", f"{text}\n{error.traceback}".rstrip()))
    return facts


def _value(value: Any) -> str:
    shown = plain(value)
    return safe(shown, keep="\n") if isinstance(shown, str) else as_json(shown)


@click.command(short_help="List the processes that work on jobs.")
@path_argument
@json_option
def workers(path: str, as_json: bool) -> None:
    """List the processes that work on jobs: the core's owners that live, and RQ's workers.

    RQ's own worker classes leave a worker in this list for minutes after it was killed; a worker of
    equeue_rq is then shown as killed. A process is an owner from its first claim on. `pid` and `host` are
    as the process itself sees them, in its container.
    """
    with opened(path) as store:
        found = views.workers(store)
    if as_json:
        print_json([_worker(each) for each in found])
        return
    rows = [
        (
            each.kind,
            each.pid or "",
            each.host,
            moment(each.since, short=True),
            each.name,
            each.details.get("state", ""),
            _holds(each),
        )
        for each in found
    ]
    columns = ["kind", "#pid", "host", "since", "name", "state", "holds"]
    print_table(columns, rows, "No process works on this store.")


def _worker(worker: views.WorkerView) -> dict[str, Any]:
    facts = dict(vars(worker))
    return {**facts, **facts.pop("details")}


def _holds(worker: views.WorkerView) -> str:
    shown = ", ".join(worker.holds[:3])
    more = len(worker.holds) - 3
    return f"{shown} and {more} more" if more > 0 else shown


COMMANDS = [stats, queues, jobs, show, workers]
