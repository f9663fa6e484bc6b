"""Type checkers accept what is legal and refuse what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPECTED = re.compile(r"# error: ([a-z-]+)$")


def check(path: Path, cache: Path) -> str:
    """What `mypy --strict` says about a file, with nothing but the default settings."""
    api = pytest.importorskip("mypy.api")
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-error-summary"]
    ignored = ["--disable-error-code=import-untyped"]  # msgpack, in the engine's own modules
    output, errors, _ = api.run([*options, *ignored, str(path)])
    assert errors == ""
    return str(output)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for both files, away from the project's own."""
    return tmp_path_factory.mktemp("mypy")


def test_legal_uses_of_the_public_api_are_accepted(cache: Path) -> None:
    assert check(HERE / "api.py", cache) == ""


def test_illegal_uses_are_refused_at_their_lines(cache: Path) -> None:
    path = HERE / "api_misuse.py"
    wanted = {
        (number, found[1])
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if (found := EXPECTED.search(line))
    }
    output = check(path, cache)
    said = re.findall(r"api_misuse\.py:(\d+): error: .*\[([a-z-]+)\]$", output, re.MULTILINE)
    assert {(int(number), code) for number, code in said} == wanted, output
