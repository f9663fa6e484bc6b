"""What the projects share: where they are run, and how their actors and jobs tell what they did."""

import os
from pathlib import Path

DIRECTORY = Path(os.environ["EQUEUE_TEST_DIRECTORY"])
STORE = DIRECTORY / "data"
LINES = DIRECTORY / "lines"


def write(*words: object) -> None:
    with LINES.open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")
