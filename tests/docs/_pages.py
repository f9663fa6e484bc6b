"""The documentation's pages, their code blocks and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"

TYPED = ["how-to/command-line.md", "production/backup.md", "production/monitoring.md"]
"""Pages whose shell blocks are typed one after the other, and print what is below them."""

_FENCE = re.compile(r"^```(?P<info>[^`]*)$")
_SKIP = re.compile(r"^<!-- skip: (?P<reason>.+\S) -->$")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: the first word after the fence.
        title: a file's name, if the page shows a file.
        text: what is inside.
        line: number of its first line in the page.
        skip: why it is not run, if so.
        expected: the text block right after it, if there is one: what it prints.
    """

    language: str
    title: str
    text: str
    line: int
    skip: str = ""
    expected: str | None = None


def pages() -> list[Path]:
    """The README and every page of the documentation."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks; a text block that shows what another one prints is part of that."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number, skip, before = 0, "", ""
    adjacent = False
    while number < len(lines):
        line = lines[number]
        number += 1
        fence = _FENCE.match(line)
        if fence is None:
            if line.strip():
                skipped = _SKIP.match(line.strip())
                skip = skipped["reason"] if skipped else ""
                adjacent = False
            continue
        start = number
        while not _FENCE.match(lines[number]):
            number += 1
        text = "".join(each + "\n" for each in lines[start:number])
        number += 1
        language, _, rest = fence["info"].strip().partition(" ")
        if language == "text" and adjacent and before in ("python", "sh") and found:
            last = found.pop()
            found.append(
                Block(last.language, last.title, last.text, last.line, last.skip, expected=text)
            )
        else:
            title = _TITLE.search(rest)
            found.append(Block(language, title[1] if title else "", text, start + 1, skip))
        skip, before, adjacent = "", language, True
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks and inline code."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors(page: Path) -> set[str]:
    """What the page's headings can be linked by."""
    return {
        _slug(title) for title in re.findall(r"^#+ +(.+)$", _unfenced(page), flags=re.MULTILINE)
    }


def _unfenced(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def _slug(title: str) -> str:
    words = re.sub(r"[^\w\s-]", "", title.lower()).strip()
    return re.sub(r"[-\s]+", "-", words)
