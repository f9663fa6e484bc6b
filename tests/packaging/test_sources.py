"""Nothing in the repository belongs to one machine."""

from __future__ import annotations

import subprocess

import pytest

from tests.packaging._source import ROOT

# In pieces, so that this file does not find itself.
WORDS = ["/work" + "/main", "/work" + "/shared", "/tmp" + "/w/"]


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The text of every file that git knows, with its name in front."""
    try:
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in names if name and (ROOT / name).is_file()]
    return [f"{path.name}\n{path.read_text(encoding='utf-8', errors='replace')}" for path in paths]


@pytest.mark.parametrize("word", WORDS)
def test_no_file_mentions_a_path_of_the_machine_it_was_written_on(
    tracked: list[str], word: str
) -> None:
    assert [text.partition("\n")[0] for text in tracked if word in text] == []
