"""What the source tree contains, without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("equeue_core", "equeue_dramatiq", "equeue_rq")


def modules(package: str) -> Iterator[Path]:
    """Every module of a package, as a path."""
    return (path for path in sorted((ROOT / package).rglob("*.py")))


def imported(path: Path) -> set[str]:
    """The full names of all modules that a file imports, wherever in the file it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, [_parent(path, node.level), node.module]))
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            names.update(_dynamic(node))
    return names


def _parent(path: Path, level: int) -> str:
    """The package that a relative import of `level` dots starts from."""
    if not level:
        return ""
    return ".".join(path.relative_to(ROOT).parts[:-level])


def _dynamic(node: ast.Call) -> Iterator[str]:
    """`__import__("name")` and `import_module("name")`."""
    function = ast.unparse(node.func)
    argument = node.args[0]
    if (
        function.rpartition(".")[2] in {"__import__", "import_module"}
        and isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
    ):
        yield argument.value
