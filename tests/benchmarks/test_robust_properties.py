"""The counting of examples and of counter-examples, by properties of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"
PROPERTIES = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_holds(number):
    pass

@given(st.booleans())
def test_has_few(flag):
    pass

@given(st.integers(0, 1000))
def test_fails(number):
    assert number < 10
"""


@pytest.fixture(scope="module")
def properties(imported: Callable[[str], ModuleType]) -> ModuleType:
    pytest.importorskip("hypothesis")
    return imported("robust/properties")


@pytest.mark.slow
def test_examples_and_counter_examples_are_counted(properties: ModuleType, tmp_path: Path) -> None:
    from hypothesis import settings

    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_few.py").write_text(PROPERTIES)
    before, counting = settings.get_current_profile_name(), properties.Counting(40, "default")
    try:
        pytest.main([str(tmp_path), "-q", "-p", "no:xdist", "-p", "no:cacheprovider"], plugins=[counting])
    finally:
        settings.load_profile(before)
    holds, few, fails = (counting.tried[f"test_few::{name}"] for name in ("test_holds", "test_has_few", "test_fails"))
    assert (holds["examples"], holds["all_there_are"], holds["failed"]) == (40, False, "")
    assert (few["examples"], few["all_there_are"]) == (2, True)
    assert "number=10" in fails["failed"]
    measured = properties.summary(counting.tried)
    assert measured["examples_of_a_property"] <= 40 and measured["counter_examples"] == 1
    assert not properties.is_met(measured)
    measured = {"examples_of_a_property": 10_000, "counter_examples": 0}
    assert properties.is_met(measured) and not properties.is_met(measured | {"counter_examples": 1})
