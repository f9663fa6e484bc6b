"""Imports go one way: adapters, core, store, lmdb."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging import _source

STORE = _source.ROOT / "equeue_core" / "_store"


def offenders(package: str, *forbidden: str) -> list[str]:
    """Files of a package that import one of the forbidden packages or anything in it."""
    found = []
    for path in _source.modules(package):
        tops = {name.partition(".")[0] for name in _source.imported(path)}
        found += [
            f"{path.relative_to(_source.ROOT)} imports {name}" for name in forbidden if name in tops
        ]
    return found


@pytest.mark.parametrize("package", _source.PACKAGES)
def test_only_the_store_package_imports_lmdb(package: str) -> None:
    outside = [line for line in offenders(package, "lmdb") if "equeue_core/_store/" not in line]
    assert outside == []


def test_the_store_package_does_import_lmdb() -> None:
    """Otherwise the test above would pass by looking in the wrong place."""
    assert any("lmdb" in _source.imported(path) for path in STORE.rglob("*.py"))


def test_the_core_imports_neither_adapter_nor_what_they_adapt() -> None:
    forbidden = ("equeue_dramatiq", "equeue_rq", "dramatiq", "rq", "redis", "lupa")
    assert offenders("equeue_core", *forbidden) == []


def test_the_adapters_do_not_import_each_other() -> None:
    assert offenders("equeue_dramatiq", "equeue_rq", "rq", "redis") == []
    assert offenders("equeue_rq", "equeue_dramatiq", "dramatiq") == []


@pytest.mark.parametrize("adapter", ["equeue_dramatiq", "equeue_rq"])
def test_the_adapters_use_the_core_through_its_public_modules(adapter: str) -> None:
    private = [
        f"{path.relative_to(_source.ROOT)} imports {name}"
        for path in _source.modules(adapter)
        for name in _source.imported(path)
        if name.startswith("equeue_core.") and any(part[0] == "_" for part in name.split("."))
    ]
    assert private == []


def test_the_cli_is_the_only_user_of_click_rich_and_textual() -> None:
    found = offenders("equeue_core", "click", "rich", "textual")
    outside = [line for line in found if "/cli/" not in line]
    assert outside == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import lmdb", "lmdb"),
        ("def f():\n    import lmdb as l", "lmdb"),
        ("from lmdb import open", "lmdb"),
        ("from equeue_rq import _x", "equeue_rq._x"),
        ("from . import _keys", "equeue_core._store._keys"),
        ("from ._keys import KEY", "equeue_core._store._keys"),
        ("from .. import errors", "equeue_core.errors"),
        ("importlib.import_module('lmdb.cffi')", "lmdb.cffi"),
    ],
)
def test_the_reader_of_imports_sees_each_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: str
) -> None:
    monkeypatch.setattr(_source, "ROOT", tmp_path)
    module = tmp_path / "equeue_core" / "_store" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(source)
    assert expected in _source.imported(module)
