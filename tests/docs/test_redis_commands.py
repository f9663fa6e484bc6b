"""The reference has each command of the connection, with what the program's table says of it."""

from __future__ import annotations

import re

import pytest

from equeue_rq._commands._table import COMMANDS
from tests.docs import _redis_commands

pytestmark = pytest.mark.once


def test_the_page_is_up_to_date() -> None:
    """If not: python -m tests.docs._redis_commands."""
    assert _redis_commands.PAGE.read_text(encoding="utf-8") == _redis_commands.page()


def test_the_page_has_each_command_once() -> None:
    names = re.findall(r"^\| `([A-Z_. -]+)` \|", _redis_commands.page(), flags=re.MULTILINE)
    assert sorted(names) == sorted(COMMANDS)


def test_each_command_says_in_a_sentence_what_it_does() -> None:
    assert [each.name for each in COMMANDS.values() if not each.summary.endswith(".")] == []
