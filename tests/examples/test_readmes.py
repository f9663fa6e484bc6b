"""What the READMEs of the examples say is what the tests run, and what there is."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.docs import _pages
from tests.examples._example import EXAMPLES, NAMES, PORT, readme_blocks

pytestmark = pytest.mark.once

INSTALL = """\
cd examples/{name}
python3 -m venv .venv
source .venv/bin/activate
pip install -e {equeue} -r requirements.txt
"""
EQUEUE = {
    "plain-script": "../..",
    "flask-rq": "'../..[rq]'",
    "django-dramatiq": "'../..[dramatiq]'",
    "fastapi-async": "../..",
}
READMES = [EXAMPLES / "README.md", *(EXAMPLES / name / "README.md" for name in NAMES)]
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def test_each_example_is_in_the_table_and_has_tests() -> None:
    there = {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    listed = re.findall(r"^\| \[([\w-]+)\]", READMES[0].read_text(), flags=re.MULTILINE)
    assert there == set(listed) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_installation(name: str) -> None:
    """It is not run, because it needs the package index: it is the same everywhere, and complete."""
    (block,) = (block for block in readme_blocks(name) if block.skip)
    assert block.text == INSTALL.format(name=name, equeue=EQUEUE[name])
    for line in (EXAMPLES / name / "requirements.txt").read_text().splitlines():
        requirement = Requirement(line)
        installed = importlib.metadata.version(requirement.name)
        assert requirement.specifier.contains(installed), f"{requirement}: {installed} is here"


@pytest.mark.parametrize("name", NAMES)
def test_every_other_command_is_run_by_a_test(name: str) -> None:
    tests = Path(__file__).with_name(f"test_{name.replace('-', '_')}.py").read_text()
    for block in readme_blocks(name):
        assert block.language, f"line {block.line} names no language"
        if block.language == "sh" and not block.skip:
            assert block.title, f"line {block.line} has no title to be run by"
            assert f'"{block.title}"' in tests, f"no test runs line {block.line}"


@pytest.mark.parametrize("name", NAMES)
def test_whoever_opens_a_second_terminal_is_told_to_activate_the_environment(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text()
    for after in text.split("In a second terminal")[1:]:
        assert re.match(r"[^`]*```sh title=\"\w+\"\nsource \.venv/bin/activate\n", after)


@pytest.mark.parametrize("name", NAMES)
def test_the_port_is_the_same_everywhere(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text()
    assert set(re.findall(r"127\.0\.0\.1:(\d+)", text)) <= {PORT}


@pytest.mark.parametrize("readme", READMES, ids=_pages.name_of)
def test_links_resolve(readme: Path) -> None:
    for link in _LINK.finditer(_pages.prose(readme)):
        assert (readme.parent / link["target"]).exists(), link["target"]


@pytest.mark.parametrize("name", NAMES)
def test_files_and_variables_that_are_named_are_there(name: str) -> None:
    directory = EXAMPLES / name
    sources = "".join(path.read_text() for path in sorted(directory.rglob("*.py")))
    text = (directory / "README.md").read_text()
    for file in re.findall(r"`([\w/]+\.py)`", text):
        assert (directory / file).exists(), file
    for variable in re.findall(r"`([A-Z]+_[A-Z_]+)`", text):
        assert variable in sources or variable == "DRAMATIQ_RESULT_BACKEND", variable
