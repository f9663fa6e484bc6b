"""The wheel holds the three packages and nothing else, and works away from the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging import _source


def run(*arguments: str | Path, cwd: Path, extra: Mapping[str, str] = {}) -> str:
    """Run Python, with none of the outer pytest's settings, and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**environment, **extra},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the wheel is built from, so that nothing is written into the source tree."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_source.ROOT / name, copy)
    for package in _source.PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_source.ROOT / package, copy / package, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="the wheel is built with `build`")
    pytest.importorskip(
        "hatchling", reason="without it, `build` would have to download the backend"
    )
    directory = tmp_path_factory.mktemp("wheel")
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", directory, source, cwd=directory)
    (built,) = directory.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_nothing_else(source: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    expected = {
        path.relative_to(source).as_posix()
        for package in _source.PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    assert names - metadata == expected
    typed = {f"{package}/py.typed" for package in _source.PACKAGES}
    lua = "answers bit cjson cmsgpack matcher patterns redis sandbox struct"
    assert {name for name in expected if Path(name).suffix != ".py"} == {
        *typed,
        *(f"equeue_rq/_lua/{name}.lua" for name in lua.split()),
    }


def test_the_wheel_carries_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_the_core_needs_only_lmdb_and_msgpack(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(path).decode().partition("\n\n")[0].splitlines()
    needed = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    assert [line for line in needed if "extra ==" not in line] == ["lmdb>=3.0", "msgpack>=1.0"]


def test_the_unpacked_wheel_works_outside_of_the_source_tree(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    tests = shutil.copy(_source.ROOT / "tests" / "packaging" / "installed_wheel.py", tmp_path)
    run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", tests),
        cwd=tmp_path,
        extra={"PYTHONPATH": str(site), "EQUEUE_SOURCE": str(_source.ROOT)},
    )
