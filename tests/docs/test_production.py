"""The pages on production: what they show is what the program says, and what other programs accept."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types

from equeue_core import StoreError
from equeue_core.cli._metrics import METRICS
from tests.docs import _pages, _troubles

pytestmark = pytest.mark.once

PRODUCTION = _pages.DOCS / "production"
TROUBLES = PRODUCTION / "troubleshooting.md"
MONITORING = PRODUCTION / "monitoring.md"

_PRIVILEGED = {
    "no_permission",
    "a_read_only_file_system",
    "a_full_disk",
    "rq_on_a_full_disk",
    "no_room_for_a_backup",
    "restored_over_a_mount_point",
}
"""Troubles that only root can get into."""


def messages() -> list[str]:
    """What the page shows as said by the program, line by line."""
    said = []
    for block in _pages.blocks(TROUBLES):
        if block.language == "text":
            said += block.text.splitlines()
    return said


def is_said(shown: str, text: str) -> bool:
    """Whether the page's line shows this text."""
    pattern = ".+".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, text) is not None


@pytest.fixture(scope="module")
def provoked() -> Iterator[Callable[[str], str]]:
    """Gets into a trouble, once; what is said of it."""
    with tempfile.TemporaryDirectory(prefix="equeue-test-") as directory:

        @functools.cache
        def provoke(name: str) -> str:
            if name in _PRIVILEGED and not _troubles.IS_ROOT:
                pytest.skip("only root can get into this")
            place = Path(directory, name)
            place.mkdir()
            return _troubles.seen(_troubles.TROUBLES[name], place / "data")

        Path(directory).chmod(0o755)  # other users get there
        yield provoke


@pytest.mark.parametrize("name", _troubles.TROUBLES)
def test_what_the_program_says_is_on_the_page(name: str, provoked: Callable[[str], str]) -> None:
    text = provoked(name)
    assert any(is_said(line, text) for line in messages()), text


def test_the_page_shows_nothing_else(provoked: Callable[[str], str]) -> None:
    said = [provoked(name) for name in _troubles.TROUBLES]
    assert [line for line in messages() if not any(is_said(line, text) for text in said)] == []


def test_each_error_of_a_store_is_provoked() -> None:
    kinds = {StoreError.__name__, *(each.__name__ for each in StoreError.__subclasses__())}
    assert kinds - {line.partition(":")[0] for line in messages()} == set()


def blocks(language: str) -> list[Any]:
    """The blocks of all pages of the section, each with its page's name."""
    return [
        pytest.param(block, id=f"{page.stem}-{Path(block.title).name}")
        for page in sorted(PRODUCTION.glob("*.md"))
        for block in _pages.blocks(page)
        if block.language == language
    ]


@pytest.mark.parametrize("block", blocks("ini"))
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_accepts_the_units(block: _pages.Block, tmp_path: Path) -> None:
    assert block.title.startswith("/etc/systemd/system/")
    unit = tmp_path / Path(block.title).name
    # The reader's programs are not here.
    unit.write_text(
        re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", block.text, flags=re.MULTILINE),
        encoding="utf-8",
    )
    if unit.suffix == ".timer":
        unit.with_suffix(".service").write_text("[Service]\nExecStart=/bin/true\n")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("block", blocks("ini"))
def test_the_units_agree_with_each_other(block: _pages.Block) -> None:
    lines = block.text.splitlines()
    if "[Service]" not in lines:
        return
    assert {"User=shop", "StateDirectory=shop", "ProtectSystem=strict"} <= set(lines)
    if "Type=oneshot" not in lines:
        assert {"Type=exec", "Restart=always", "RestartSec=5"} <= set(lines)


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_is_yaml(block: _pages.Block) -> None:
    assert isinstance(yaml.safe_load(block.text), dict)


def test_the_containers_share_a_volume_and_a_user() -> None:
    (block,) = (
        each for each in _pages.blocks(PRODUCTION / "containers.md") if each.title == "compose.yaml"
    )
    services = yaml.safe_load(block.text)["services"].values()
    assert len(services) == 2
    for name in ("user", "volumes"):
        assert len({str(service[name]) for service in services}) == 1


def rules() -> list[dict[str, Any]]:
    (block,) = (each for each in _pages.blocks(MONITORING) if each.title == "equeue-rules.yml")
    (group,) = yaml.safe_load(block.text)["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_alerts_use_metrics_that_there_are() -> None:
    used = {name for rule in rules() for name in re.findall(r"equeue_\w+", rule["expr"])}
    assert used - set(METRICS) == set()
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 5


def test_each_alert_is_explained() -> None:
    for rule in rules():
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]
