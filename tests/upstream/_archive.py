"""Dramatiq's source archive: fetched from the package registry when the tests run, and not kept here.

Dramatiq is under the LGPL. Its tests are run as they are; none of their text is part of this project.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SHA256 = {
    "2.2.1": "f9fbbd2feea27b3fa4085446242a24d86f78288b20c78a93f9f0bdbd7d908cd5",
    "2.0.0": "85ff840bcc1393812e0079bb310036f647e011036124a7a1492692da7966a093",
}
NEWEST = "2.2.1"


def fetch(version: str, cache: Path) -> Path:
    """The archive of a version, from the cache or else from the package registry.

    Raises:
        RuntimeError: the version has no checksum above, cannot be fetched, or is not what the checksum says.
    """
    if version not in SHA256:
        raise RuntimeError(
            f"Dramatiq {version} is installed, and tests/upstream knows {', '.join(SHA256)}: "
            "install one of these, or add the checksum of the source archive to _archive.py."
        )
    archive = cache / f"dramatiq-{version}.tar.gz"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            downloaded = Path(directory) / archive.name
            _download(version, downloaded.parent)
            _verify(version, downloaded)
            downloaded.replace(archive)
    _verify(version, archive)
    return archive


def unpack_tests(archive: Path, directory: Path) -> Path:
    """Unpack the tests, and not the package, of which the installed one is meant; returns where they are."""
    with tarfile.open(archive) as tar:
        members = [
            member
            for member in tar.getmembers()
            if member.isfile() and Path(member.name).parts[1:2] == ("tests",)
        ]
        for member in members:
            source = tar.extractfile(member)
            assert source is not None
            target = directory / Path(*Path(member.name).parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    return directory / "tests"


def _download(version: str, directory: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", "dramatiq", "--dest", str(directory)]
    done = subprocess.run(
        [*command, f"dramatiq=={version}"], capture_output=True, text=True, timeout=180
    )
    if done.returncode:
        raise RuntimeError(f"pip cannot fetch the source of Dramatiq {version}:\n{done.stderr}")


def _verify(version: str, archive: Path) -> None:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256[version]:
        raise RuntimeError(
            f"{archive} is not the archive of Dramatiq {version}: sha256 is {found}."
        )
