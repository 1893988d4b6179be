"""How many examples: 25 of each property in `make test`; 10,000 with HYPOTHESIS_PROFILE=thorough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    collect_ignore_glob = ["test_*.py"]  # it is a dependency of developers
else:
    settings.register_profile(
        "quick", max_examples=25, deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    settings.register_profile(
        "thorough", max_examples=10_000, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )  # fmt: skip
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for files that every example writes anew."""
    return tmp_path_factory.mktemp("properties")
