"""Commands that change jobs and queues."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from equeue_core import queues as views
from equeue_core._store import _files
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, Failure
from equeue_core.cli._open import (
    opened,
    opened_queue,
    path_argument,
    queue_argument,
    require_store,
)
from equeue_core.cli._output import (
    confirm,
    json_option,
    note,
    print_json,
    progress,
    say,
    yes_option,
)
from equeue_core.errors import EQueueError

_SECONDS = click.FloatRange(min=0)


@click.command(short_help="Put a job in a queue.")
@path_argument
@queue_argument
@click.argument("payload")
@click.option("--text", is_flag=True, help="PAYLOAD is the text to put, and not JSON.")
@click.option("--priority", type=float, help="Smaller runs first. Default: 0.")
@click.option(
    "--delay", type=_SECONDS, metavar="SECONDS", help="When it may run. Default: at once."
)
@click.option(
    "--expires-in",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="It is cancelled if no worker has taken it by then. Default: never.",
)
@click.option("--unique", metavar="KEY", help="Refuse it if an unfinished job has this key.")
@click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    help="Its own limit. Default: the consuming queue's.",
)
@click.option("--create", is_flag=True, help="Make the store and the queue if they are missing.")
@json_option
def put(
    path: str,
    queue: str,
    payload: str,
    text: bool,
    create: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Put a job in a queue, and print its id.

    PAYLOAD is JSON, or - for what comes on standard input. Dramatiq's queues take a call like
    '{"actor": "send", "args": [1]}', RQ's like '{"function": "module.send", "args": [1]}'; both take
    only --delay of the options about the job. With --create, a name that begins with dramatiq: or rq:
    makes a queue of theirs, any other one of the core.
    """
    value = _payload(payload, text)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        with _target(path, queue, create) as view:
            job_id = view.put(value, **given)
    except EQueueError:
        raise
    except (ValueError, TypeError) as error:  # the options are checked where jobs are put
        raise Failure(str(error), Code.USAGE) from error
    if as_json:
        print_json({"id": job_id})
    else:
        say(job_id)


def _payload(given: str, text: bool) -> Any:
    content = given
    if given == "-":
        try:
            content = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise Failure(f"standard input is no text: {error}", Code.USAGE) from error
    if text:
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Failure(
            f"the payload is not JSON ({error}). For a text, say --text, or quote it for JSON too.",
            Code.USAGE,
        ) from error


@contextmanager
def _target(path: str, name: str, create: bool) -> Iterator[views.QueueView]:
    if create:
        is_there = os.path.exists(os.path.join(path, _files.DATA))
        if not is_there:
            views.require_adapter(name)
        with opened(path) if is_there else Store(path) as store:
            try:
                view = views.queue(store, name)
            except views.QueueNotFound:
                view = views.make(store, name)
            yield view
        return
    try:
        require_store(path)
    except Failure as error:
        raise Failure(
            f"{error.message} To make a new one, say --create.", Code.NOT_FOUND
        ) from error
    try:
        with opened_queue(path, name) as view:
            yield view
    except views.QueueNotFound as error:
        raise Failure(f"{error}. To make it, say --create.", Code.NOT_FOUND) from error


@click.command(short_help="Have a job that has ended run again.")
@path_argument
@queue_argument
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("--all-failed", is_flag=True, help="Requeue every failed job instead of one.")
@yes_option
def requeue(path: str, queue: str, job_id: str | None, all_failed: bool, yes: bool) -> None:
    """Have a job that has ended run again, with all its retries.

    RQ's queues requeue failed jobs only.
    """
    if (job_id is None) is not all_failed:
        raise click.UsageError("Give the ID of a job, or --all-failed.")
    with opened_queue(path, queue) as view:
        if job_id is not None:
            view.requeue(job_id)
            note(f"Job {job_id} is pending again.")
            return
        failed = view.counts()["failed"]
        confirm(f"Requeue all {failed} failed jobs of {queue!r}?", yes or not failed)
        done = partial(_fewer, view, "failed", failed)
        with progress(f"Requeueing failed jobs of {queue}", failed, done):
            number = view.requeue_failed()
        note(f"Requeued {number} jobs.")


@click.command(short_help="Keep a waiting job from running.")
@path_argument
@queue_argument
@click.argument("job_id", metavar="ID")
@yes_option
def cancel(path: str, queue: str, job_id: str, yes: bool) -> None:
    """Keep a job from running that is pending or scheduled."""
    with opened_queue(path, queue) as view:
        job = view.job(job_id)
        confirm(f"Cancel job {job_id} of {queue!r} ({job.summary[:60]})?", yes)
        view.cancel(job_id)
    note(f"Job {job_id} is cancelled.")


@click.command(short_help="Remove all jobs that are in one state.")
@path_argument
@queue_argument
@click.option(
    "--state",
    required=True,
    type=click.Choice([*(state for state in views.STATES if state != "running"), "deferred"]),
    help="Which jobs.",
)
@yes_option
def purge(path: str, queue: str, state: str, yes: bool) -> None:
    """Remove all jobs of a queue that are in one state. They cannot be brought back."""
    with opened_queue(path, queue) as view:
        number = view.counts().get(state, 0)
        confirm(f"Remove all {number} {state} jobs of {queue!r} for good?", yes or not number)
        try:
            done = partial(_fewer, view, state, number)
            with progress(f"Removing {state} jobs of {queue}", number, done):
                removed = view.purge(state)
        except ValueError as error:
            raise Failure(str(error), Code.USAGE) from error
    note(f"Removed {removed} jobs.")


def _fewer(view: views.QueueView, state: str, before: int) -> int:
    """By how much the jobs in the state have become fewer."""
    return max(0, before - view.counts()[state])


@click.command(short_help="Hand out no more jobs of a queue.")
@path_argument
@queue_argument
def pause(path: str, queue: str) -> None:
    """Hand out no more jobs of a queue, in any process. Jobs in hand go on."""
    with opened_queue(path, queue) as view:
        view.pause()
    note(f"The queue {queue!r} is paused. To go on: equeue resume.")


@click.command(short_help="Hand out jobs of a paused queue again.")
@path_argument
@queue_argument
def resume(path: str, queue: str) -> None:
    """Hand out jobs of a paused queue again."""
    with opened_queue(path, queue) as view:
        view.resume()
    note(f"The queue {queue!r} hands out jobs.")


COMMANDS = [put, requeue, cancel, purge, pause, resume]
