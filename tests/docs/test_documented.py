"""What a user can meet is documented: commands, options, errors, log messages, metrics, variables."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import dramatiq.errors
import dramatiq.results
import pytest
import redis.exceptions
import rq.exceptions

import equeue_core
import equeue_dramatiq
import equeue_dramatiq.abort
import equeue_rq
from equeue_core import errors
from equeue_core.cli._app import app
from equeue_core.cli._errors import Code
from equeue_core.cli._metrics import METRICS
from tests.docs import _pages

pytestmark = pytest.mark.once

REFERENCE = _pages.DOCS / "reference"
CLI = REFERENCE / "cli.md"
ERRORS = REFERENCE / "errors.md"
OPTIONS = REFERENCE / "options.md"
COMMAND_LINE = _pages.DOCS / "how-to" / "command-line.md"
MONITORING = _pages.DOCS / "production" / "monitoring.md"

PACKAGES = [equeue_core, equeue_dramatiq, equeue_rq]
LIBRARIES = [dramatiq.errors, dramatiq.results, redis.exceptions, rq.exceptions]

HANDLED = {"InvalidJobOperation"}
"""Errors of the libraries that the adapters only catch."""


def part(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one of the same level."""
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the rows below a heading, without the first row."""
    lines = [line for line in part(page, heading).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def named(cell: str) -> list[str]:
    """What is marked as code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


@functools.cache
def sources(*packages: str) -> list[ast.Module]:
    """The modules of the packages."""
    paths = (path for name in packages for path in sorted((_pages.ROOT / name).rglob("*.py")))
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def everything() -> list[ast.Module]:
    """The modules of all packages."""
    return sources(*(package.__name__ for package in PACKAGES))


# Commands and their options


def commands() -> list[Any]:
    return [pytest.param(name, command, id=name) for name, command in sorted(app.commands.items())]


@pytest.mark.parametrize(("name", "command"), commands())
def test_each_command_is_in_the_reference_with_all_that_it_takes(
    name: str, command: click.Command
) -> None:
    shown = part(CLI, f"equeue {name}")
    usage = next(line for line in shown.splitlines() if line.startswith(f"equeue {name}"))
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    told = {option.split()[0]: row for row in rows for option in named(row.split(" | ")[0])}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help
            for option in parameter.opts:
                assert parameter.help in told[option]
        else:
            assert (parameter.metavar or str(parameter.name).upper()) in usage.split()
        assert parameter.envvar is None, "say so in the reference"


@pytest.mark.parametrize(("name", "command"), commands())
def test_each_command_is_on_the_how_to_page(name: str, command: click.Command) -> None:
    assert re.search(rf"\bequeue {name}\b", COMMAND_LINE.read_text(encoding="utf-8"))


def test_the_options_of_the_whole_command_are_in_the_reference() -> None:
    options = [each for each in app.params if isinstance(each, click.Option)]
    names = [name for each in options for name in each.opts]
    names += app.context_settings["help_option_names"]
    start = CLI.read_text(encoding="utf-8").split("\n## ")[0]
    assert [name for name in names if f"`{name}`" not in start] == []


def test_each_exit_code_is_in_the_reference() -> None:
    assert [row[0] for row in table(CLI, "Exit codes")] == [str(int(code)) for code in Code]


def test_each_metric_is_explained_and_on_the_page_on_monitoring() -> None:
    assert [named(row[0]) for row in table(CLI, "Metrics")] == [[name] for name in METRICS]
    shown = set(re.findall(r"equeue_\w+", MONITORING.read_text(encoding="utf-8")))
    assert set(METRICS) - shown == set()


# Errors


def test_each_error_has_a_row_with_what_to_do() -> None:
    found = {name: row for row in table(ERRORS, "What to do") for name in named(row[0])}
    assert sorted(found) == sorted(errors.__all__)
    for name, row in found.items():
        assert len(row) == 3, name
        assert all(row), name


def test_each_error_says_when_it_is_raised() -> None:
    for name in errors.__all__:
        sentence = inspect.getdoc(getattr(errors, name)) or ""
        assert sentence.split("\n\n")[0].rstrip().endswith("."), name


def imported_errors() -> set[str]:
    """The errors of the libraries that modules of the adapters import, by their full names."""
    libraries = {library.__name__: library for library in LIBRARIES}
    found = set()
    for tree in sources("equeue_dramatiq", "equeue_rq"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in libraries:
                for alias in node.names:
                    value = getattr(libraries[node.module], alias.name)
                    if inspect.isclass(value) and issubclass(value, Exception):
                        found.add(f"{node.module}.{alias.name}")
    return found


def test_each_error_that_the_adapters_raise_has_a_row() -> None:
    found = table(ERRORS, "What the adapters raise")
    assert all(len(row) == 3 and all(row) for row in found)
    shown = {name for row in found for name in named(row[0])}
    raised = {name for name in imported_errors() if name.rpartition(".")[2] not in HANDLED}
    # What a server's refusals are in redis-py: they are made from their texts.
    assert shown == raised | {"redis.exceptions.ResponseError"}


# Log messages and warnings

_LEVELS = ("debug", "info", "warning", "error", "exception", "critical")


def logged() -> Iterator[str]:
    """The messages that the packages log, with `...` for what differs."""
    for tree in everything():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_log(node.func):
                message = node.args[0]
                assert isinstance(message, ast.Constant), ast.unparse(node)
                yield re.sub(r"%[a-z]", "...", str(message.value))


def _is_log(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _LEVELS
        and re.search(r"\blog(ger)?$|\b_log$", ast.unparse(function.value)) is not None
    )


def test_each_log_message_is_on_the_page_on_monitoring() -> None:
    shown = [named(row[0])[0] for row in table(MONITORING, "Log messages")]
    assert sorted(shown) == sorted(set(logged()))
    assert len(shown) > 5


def test_nothing_is_warned_of_in_another_way() -> None:
    """If something is: say on the page on monitoring what it means."""
    calls = {
        ast.unparse(node.func)
        for tree in everything()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert [call for call in calls if call.startswith("warnings.")] == []


# Environment variables


def variables() -> set[str]:
    """The names of environment variables that the packages read or set."""
    found: set[str] = set()
    for tree in everything():
        constants = {
            target.id: str(node.value.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            for name in _names_of_variables(node):
                if isinstance(name, ast.Constant):
                    found.add(str(name.value))
                else:
                    assert isinstance(name, ast.Name), ast.unparse(name)
                    found.add(constants[name.id])
    return found


def _names_of_variables(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        yield node.slice
    elif isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        if function == "os.getenv" or re.fullmatch(r"os\.environ\.\w+", function):
            yield node.args[0]
    elif isinstance(node, ast.Dict) and any(
        key is None and ast.unparse(value) == "os.environ"
        for key, value in zip(node.keys, node.values, strict=True)
    ):
        yield from (key for key in node.keys if key is not None)


def test_each_environment_variable_is_in_the_reference() -> None:
    shown = {name for row in table(OPTIONS, "Environment variables") for name in named(row[0])}
    assert variables() - shown == set()
    assert f"_{str(app.name).upper()}_COMPLETE" in shown


# Names and options of the packages


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_each_public_name_is_in_the_reference(package: ModuleType) -> None:
    shown = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    names = [name for name in package.__all__ if not name.startswith("__")]
    assert [name for name in names if not re.search(rf"[`.]{name}\b", shown)] == []


def callables() -> list[Any]:
    """The public classes and functions, and the methods that they define, but for what RQ defines."""
    public = [getattr(package, name) for package in PACKAGES for name in package.__all__]
    public.append(equeue_dramatiq.abort.LMDBEventBackend)
    found = []
    for value in public:
        if not callable(value) or not value.__module__.startswith("equeue_"):
            continue
        if value is equeue_rq.LMDBConnection:
            continue  # is not for applications, as the reference says
        found.append(pytest.param(value, id=f"{value.__module__}.{value.__qualname__}"))
        for name, member in vars(value).items() if inspect.isclass(value) else ():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and is_own(function) and not name.startswith("_"):
                found.append(
                    pytest.param(function, id=f"{value.__module__}.{function.__qualname__}")
                )
    return found


def is_own(function: Any) -> bool:
    """Whether it is not one of RQ's in a new cover."""
    module: str = inspect.unwrap(function).__module__
    return module.startswith("equeue_")


@pytest.mark.parametrize("value", callables())
def test_each_option_is_explained(value: Any) -> None:
    explained = inspect.getdoc(value) or ""
    if value.__qualname__.startswith("Async"):
        # The verbs are those of the ordinary classes.
        names = value.__qualname__.removeprefix("Async").split(".")
        explained += inspect.getdoc(functools.reduce(getattr, names, equeue_core)) or ""
    on_the_page = set(re.findall(r"^\| `(\w+)`", OPTIONS.read_text(encoding="utf-8"), re.MULTILINE))
    for name in options(value):
        told = re.search(rf"\b{name}\b", explained)
        assert told or name in on_the_page, name


def options(value: Any) -> list[str]:
    """What can be left out when it is called; of a class, all that it is made with."""
    if inspect.isclass(value):
        value = vars(value).get("__init__")
        if value is None or not is_own(value):
            return []
    return [
        name
        for name, parameter in inspect.signature(value).parameters.items()
        if not name.startswith("_") and parameter.default is not inspect.Parameter.empty
    ]
