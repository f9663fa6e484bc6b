"""docs/contract.md and the tests agree: no promise without a test, no test of an unknown promise."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "contract.md"

ID = re.compile(r"[A-Z]{3}-\d\d")
ROW = re.compile(r"^\| (?P<id>\S+) \| (?P<promise>.+) \|$", re.MULTILINE)

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here"),
]


def promises() -> list[tuple[str, str]]:
    """Id and text of each row of the page's tables."""
    rows = [(row["id"], row["promise"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
    return [row for row in rows if row[0] not in ("id", "---")]


def named_by(node: ast.expr) -> list[str] | None:
    """The ids that a `contract(...)` marker names; None if the expression is none."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("mark.contract"):
        return None
    return [argument.value for argument in node.args if isinstance(argument, ast.Constant)]


def markers(path: Path) -> Iterator[str]:
    """Every id that a test of the module names, by a decorator or for the whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                yield from named_by(decorator) or ()
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            values = node.value.elts if isinstance(node.value, ast.List) else [node.value]
            for value in values:
                yield from named_by(value) or ()


def proofs() -> Counter[str]:
    """How many markers name each id."""
    return Counter(name for path in sorted(TESTS.rglob("*.py")) for name in markers(path))


def test_each_promise_has_an_id_of_its_own() -> None:
    ids = [name for name, _ in promises()]
    assert ids, "no promise was found in the page"
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert [name for name in ids if not ID.fullmatch(name)] == []


def test_the_ids_of_a_subject_are_numbered_without_gaps() -> None:
    subjects: dict[str, list[int]] = {}
    for name, _ in promises():
        subject, _, number = name.partition("-")
        subjects.setdefault(subject, []).append(int(number))
    for subject, numbers in subjects.items():
        assert numbers == list(range(1, len(numbers) + 1)), subject


def test_each_promise_has_a_test() -> None:
    assert {name for name, _ in promises()} - set(proofs()) == set()


def test_each_test_names_a_promise_that_is_there() -> None:
    assert set(proofs()) - {name for name, _ in promises()} == set()


def test_each_promise_is_a_sentence() -> None:
    assert [name for name, text in promises() if not text.endswith(".")] == []


def test_each_contract_class_is_bound_to_some_kind_of_queue() -> None:
    """A test in a class that nobody subclasses proves nothing."""
    classes: set[str] = set()
    bases: set[str] = set()
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                if TESTS / "contract" in path.parents and node.name.endswith("Contract"):
                    classes.add(node.name)
                bases |= {ast.unparse(base) for base in node.bases}
    assert classes
    assert classes - bases == set()
