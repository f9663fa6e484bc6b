"""The group of commands, and how it ends."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import click

from equeue_core.cli import _demo, _doctor, _look, _manage, _metrics, _top, _upkeep
from equeue_core.cli._errors import Code, Failure, code_of, text_of
from equeue_core.errors import EQueueError


class Commands(click.Group):
    """The commands; what goes wrong in one becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            result = super().invoke(ctx)
            # Here, because at the interpreter's end an error would be printed.
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            _give_up_output()
            ctx.exit(Code.CLOSED_PIPE)
        except (KeyboardInterrupt, click.Abort):
            click.echo(err=True)
            ctx.exit(Code.INTERRUPTED)
        except (EQueueError, OSError) as error:
            raise Failure(text_of(error), code_of(error)) from error


def _give_up_output() -> None:
    """Let what is still buffered go nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import equeue_core

        click.echo(f"equeue {equeue_core.__version__}")
        ctx.exit()


@click.group(cls=Commands, name="equeue", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def app() -> None:
    """Look at equeue's stores and look after them.

    PATH is a store's directory: what a program gives to Queue, Store, LMDBBroker or LMDBRedis. It does
    not matter which of them put the jobs there.
    """


for module in (_demo, _look, _top, _manage, _upkeep, _doctor, _metrics):
    for command in module.COMMANDS:
        app.add_command(command)


def run() -> int:
    """Run the command with the process's arguments; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Of a terminal that is not for Unicode; tests have streams of their own.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app.main(prog_name="equeue")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
