"""The reference has every public name, and its tables are the program's."""

from __future__ import annotations

import inspect
import re

import pytest

import equeue_core
import equeue_dramatiq
import equeue_rq
from equeue_core import (
    AsyncQueue,
    EQueueError,
    Queue,
    Store,
    errors,
    exponential_backoff,
)
from equeue_core._store import _format, _keys, _rows, _spaces
from tests.docs import _pages

pytestmark = pytest.mark.once

REFERENCE = _pages.DOCS / "reference"
OPTIONS = REFERENCE / "options.md"
FILE_FORMAT = _pages.DOCS / "explanation" / "file-format.md"


def _directives() -> list[str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    return re.findall(r"^::: ([\w.]+)$", text, flags=re.MULTILINE)


def test_every_public_name_is_on_a_reference_page() -> None:
    public = [f"equeue_core.{name}" for name in equeue_core.__all__]
    public += [f"equeue_dramatiq.{name}" for name in equeue_dramatiq.__all__]
    public += ["equeue_dramatiq.abort.LMDBEventBackend"]
    explained_elsewhere = ("LMDBConnection", "get_current_job")  # by the pool, and by RQ
    public += [f"equeue_rq.{name}" for name in equeue_rq.__all__ if name not in explained_elsewhere]
    assert sorted(_directives()) == sorted(public)


def test_the_error_page_has_the_tree_that_the_program_has() -> None:
    assert errors.__doc__ is not None
    tree = re.findall(r"^    (.+)$", errors.__doc__, flags=re.MULTILINE)
    (shown, *_) = _pages.blocks(REFERENCE / "errors.md")
    assert shown.text.splitlines() == tree
    assert re.findall(r"^[│├└─ ]*(\w+)", "\n".join(tree), flags=re.MULTILINE) == _tree_order(
        EQueueError
    )
    assert sorted(_tree_order(EQueueError)) == sorted(errors.__all__)


def _tree_order(error: type[Exception]) -> list[str]:
    """The error and those that derive from it, in the order in which they are defined."""
    below = [each for each in error.__subclasses__() if each.__module__ == errors.__name__]
    mine = [each for each in below if each.__bases__[0] is error]
    return [error.__name__, *(name for each in mine for name in _tree_order(each))]


def _section(heading: str) -> dict[str, str]:
    """Option and default of each row of the table under a heading of the options page."""
    text = OPTIONS.read_text(encoding="utf-8")
    part = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", part, flags=re.MULTILINE))


def _defaults(function: object, *without: str) -> dict[str, str]:
    assert callable(function)
    return {
        name: repr(parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in without
    }


def test_the_options_page_has_the_programs_defaults() -> None:
    assert _section("Queue and AsyncQueue") == _defaults(Queue)
    assert _defaults(Queue) == _defaults(AsyncQueue)
    assert _section("Store") == _defaults(Store)
    assert _section("put") == _defaults(Queue.put)
    assert _section("exponential_backoff") == _defaults(exponential_backoff)


def test_the_file_format_page_has_every_kind_of_key() -> None:
    text = FILE_FORMAT.read_text(encoding="utf-8")
    part = text.split("## A queue's keys")[1].split("\n## ")[0]
    shown = dict(re.findall(r"^\| `(\w)` \| (\w+) \|", part, re.MULTILINE))
    kinds = {
        name: value.decode()
        for name, value in vars(_keys).items()
        if name.isupper() and isinstance(value, bytes) and len(value) == 1
    }
    assert {name: kind for kind, name in shown.items()} == kinds


def test_the_file_format_page_has_every_store_key() -> None:
    text = FILE_FORMAT.read_text(encoding="utf-8")
    part = text.split("## The store's own keys")[1].split("\n## ")[0]
    shown = dict(re.findall(r"^\| `0 0 (\w)` \| (\w+) \|", part, re.MULTILINE))
    kinds = {
        name: value[2:].decode()
        for name, value in vars(_keys).items()
        if name.isupper() and isinstance(value, bytes) and len(value) == 3
    }
    assert {name: kind for kind, name in shown.items()} == kinds


def test_the_file_format_page_has_the_adapters_spaces() -> None:
    text = FILE_FORMAT.read_text(encoding="utf-8")
    part = text.split("## An adapter's keys")[1].split("\n## ")[0]
    shown = {name: int(number) for number, name in re.findall(r"\| (\d+) \| (\w+) \|", part)}
    assert shown == {each.name: each.value for each in _spaces.SpaceId}
    for kind in ("VALUE", "EXPIRY"):
        assert f"| `{getattr(_spaces, kind).decode()}` | {kind} |" in part


def test_the_file_format_page_has_the_sizes_and_the_number() -> None:
    text = FILE_FORMAT.read_text(encoding="utf-8")
    sizes = {
        "head": _rows.HEAD.size,
        "claim": _rows.CLAIM.size,
        "end": _rows.END.size,
        "counters": _rows.COUNTERS.size,
    }
    for name, size in sizes.items():
        assert f"{name} ({size} bytes" in text, name
    assert f"Format number: {_format.FORMAT_NUMBER}." in text
