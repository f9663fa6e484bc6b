"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.contract")

# A shared machine is slow at random: time never decides a test. With derandomize, two runs of the
# same code try the same examples; `make torture` looks further, at new ones.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("torture", settings.get_profile("default"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """A path for a store; nothing is there yet."""
    return tmp_path / "data"
