"""What the tests of the examples that serve HTTP have in common."""

from __future__ import annotations

import pytest

from tests.examples._browser import Browser
from tests.examples._example import Example


@pytest.fixture
def browser(example: Example) -> Browser:
    """A browser for the example's address."""
    return Browser(example.url)
