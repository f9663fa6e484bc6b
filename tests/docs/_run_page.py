"""Runs one page's Python blocks as one program: ``python _run_page.py PAGE``, in a fresh directory.

Every block sits at its own line of the page, so that a traceback names it. What a block prints is
compared with the text block behind it, where there is one ("..." stands for anything).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import sys
from pathlib import Path
from types import ModuleType

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.path.remove(str(Path(__file__).parent))

from tests.docs._pages import Block, blocks

_FLAGS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


def run(page: Path) -> None:
    """Write the page's files, then run its other blocks in order."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    for block in blocks(page):
        if block.language != "python" or block.skip:
            continue
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        else:
            _run_block(page, block, module)


def _run_block(page: Path, block: Block, module: ModuleType) -> None:
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, module.__dict__)
    if block.expected is None:
        return
    checker = doctest.OutputChecker()
    if not checker.check_output(block.expected, printed.getvalue(), _FLAGS):
        example = doctest.Example(block.text, block.expected)
        difference = checker.output_difference(example, printed.getvalue(), _FLAGS)
        raise SystemExit(f"{page}, line {block.line}, prints something else:\n{difference}")


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
