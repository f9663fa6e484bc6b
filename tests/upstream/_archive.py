"""Source archives of other projects: fetched from the package registry when the tests run, and not kept here.

Their tests are run as they are; none of their text is part of this project. Dramatiq is under the LGPL, RQ
under a BSD licence.
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
    "dramatiq": {
        "2.2.1": "f9fbbd2feea27b3fa4085446242a24d86f78288b20c78a93f9f0bdbd7d908cd5",
        "2.0.0": "85ff840bcc1393812e0079bb310036f647e011036124a7a1492692da7966a093",
    },
    "rq": {
        "3.0.0": "b41e39b3c36ec3faf9e2402c638a0b25fe18ebb93a1cb15193bc69694f054618",
        "2.0.0": "76d2a4a27f8fd5c4cfa200cd442efe3c1fd73525c676af06f07fcc0b81bdb70d",
    },
}


def newest(project: str) -> str:
    """The newest version of a project whose tests are known."""
    return next(iter(SHA256[project]))


def fetch(project: str, version: str, cache: Path) -> Path:
    """The archive of a version, from the cache or else from the package registry.

    Raises:
        RuntimeError: the version has no checksum above, cannot be fetched, or is not what the checksum says.
    """
    known = SHA256[project]
    if version not in known:
        raise RuntimeError(
            f"{project} {version} is installed, and tests/upstream knows {', '.join(known)}: "
            "install one of these, or add the checksum of the source archive to _archive.py."
        )
    archive = cache / f"{project}-{version}.tar.gz"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            downloaded = Path(directory) / archive.name
            _download(project, version, downloaded.parent)
            _verify(downloaded, known[version])
            downloaded.replace(archive)
    _verify(archive, known[version])
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


def _download(project: str, version: str, directory: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", project, "--dest", str(directory)]
    done = subprocess.run(
        [*command, f"{project}=={version}"], capture_output=True, text=True, timeout=180
    )
    if done.returncode:
        raise RuntimeError(f"pip cannot fetch the source of {project} {version}:\n{done.stderr}")


def _verify(archive: Path, sha256: str) -> None:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        raise RuntimeError(f"{archive} is not what _archive.py knows: its sha256 is {found}.")
