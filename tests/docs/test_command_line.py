"""The pages whose commands are typed block by block, and the reference of the commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from equeue_core.cli._app import app
from equeue_core.cli._errors import MEANINGS, Code
from tests.docs import _cli, _pages

pytestmark = pytest.mark.once

PAGES = [_pages.DOCS / name for name in _pages.TYPED]


def write_command(path: Path, *words: str) -> None:
    path.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" {" ".join(words)} "$@"\n', encoding="utf-8"
    )
    path.chmod(0o700)


def matches(expected: str, printed: str) -> bool:
    pattern = ".*".join(
        re.escape(part) for part in re.sub(" *[.]{3} *", "...", expected).split("...")
    )
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.parametrize("page", PAGES, ids=_pages.name_of)
def test_the_page(page: Path, tmp_path: Path) -> None:
    commands, work = tmp_path / "bin", tmp_path / "work"
    commands.mkdir()
    work.mkdir()
    write_command(commands / "python")
    write_command(commands / "equeue", "-m", "equeue_core")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(commands), os.environ["PATH"]]),
        "PYTHONPATH": str(_pages.ROOT),
    }
    run = 0
    for block in _pages.blocks(page):
        if block.skip or block.language not in ("sh", "python"):
            continue
        if block.title:
            (work / block.title).write_text(block.text, encoding="utf-8")
            continue
        assert block.language == "sh"
        run += 1
        done = subprocess.run(
            ["bash", "-c", block.text],
            cwd=work,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        printed, expected = done.stdout.splitlines(), (block.expected or "").splitlines()
        assert len(printed) == len(expected), f"line {block.line}:\n{done.stdout}"
        for line, shown in zip(expected, printed, strict=True):
            assert matches(line, shown), f"line {block.line}: {shown!r} instead of {line!r}"
    assert run > 1


def test_the_reference_is_up_to_date() -> None:
    """If not: python -m tests.docs._cli."""
    assert _cli.PAGE.read_text(encoding="utf-8") == _cli.page()


def test_the_reference_has_each_command_and_option() -> None:
    text = _cli.page()
    for name, command in app.commands.items():
        part = text.split(f"\n## equeue {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"| `{parameter.opts[0]}" in part


def test_each_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Code)


def test_every_command_says_in_a_sentence_what_it_does() -> None:
    for command in app.commands.values():
        assert (command.help or "").strip()
        assert command.get_short_help_str(99).endswith(".")
