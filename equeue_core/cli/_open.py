"""Opening what the arguments name. A wrong path is an error, and never a new store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem

from equeue_core import queues as views
from equeue_core._store import _files, _format, _peek
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, Failure
from equeue_core.errors import EQueueError, StoreVersionError


@contextmanager
def opened(path: str, upgrade: bool = False) -> Iterator[Store]:
    """The store at `path`, which is there already.

    Parameters:
        path: the directory.
        upgrade: whether a store of an older format may be brought to the present one.

    Raises:
        Failure: there is no store.
        EQueueError: it cannot be used.
    """
    require_store(path)
    found = _peek.peek(path)
    if found is not None and found["format"] != _format.FORMAT_NUMBER and not upgrade:
        raise StoreVersionError(
            f"the store at {path} has format {found['format']}, and using it would change that to "
            f"{_format.FORMAT_NUMBER}: if no process of an older release needs it, say `equeue compact "
            f"{path}`, and then try again"
        )
    # It may be removed between two of these steps: that makes no new one.
    with _files.making_none(), Store(path) as store:
        yield store


def require_store(path: str) -> None:
    """Refuse a path at which no store is.

    Raises:
        Failure: there is none.
    """
    data = os.path.join(path, _files.DATA)
    try:
        os.stat(data)
        return
    except PermissionError as error:
        raise _files.access_error(path, error) from error
    except (OSError, ValueError):
        pass
    if not os.path.exists(path):
        why = "there is no such directory"
    elif not os.path.isdir(path):
        why = "that is not a directory"
    elif os.path.exists(os.path.join(path, _files.LOCK)):
        why = f"its {_files.DATA} is missing: restore it from a backup (equeue restore)"
    else:
        why = f"the directory has no {_files.DATA}"
    raise Failure(
        f"no store at {path!r}: {why}. Give the path that your program gives to Queue, Store, LMDBBroker "
        "or LMDBRedis.",
        Code.NOT_FOUND,
    )


@contextmanager
def opened_queue(path: str, name: str) -> Iterator[views.QueueView]:
    """One queue of the store at `path`.

    Raises:
        Failure, EQueueError: as for `opened`.
        QueueNotFound: there is no such queue.
    """
    with opened(path) as store:
        yield views.queue(store, name)


class StorePath(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """The directory of a store."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("the path is empty", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="dir")]


class QueueName(click.ParamType):  # type: ignore[type-arg]
    """The name of a queue; the shell completes those that are there."""

    name = "queue"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            with opened(ctx.params["path"]) as store:
                names = [view.name for view in views.queues(store)]
        except (EQueueError, click.ClickException, OSError, KeyError):
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


path_argument = click.argument("path", type=StorePath())
queue_argument = click.argument("queue", type=QueueName())
