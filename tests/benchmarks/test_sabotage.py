"""The benchmark of altered runs: its cases, what it holds to be right, and the table of its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "honesty"
RESULT = FOLDER / "results" / "sabotage.json"
measured = pytest.mark.skipif(not RESULT.is_file(), reason="results/sabotage.json is not there: run the benchmark")


@pytest.fixture(scope="module")
def script(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("honesty/sabotage")


def result() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return content


@measured
def test_the_page_shows_the_committed_numbers(script: ModuleType) -> None:
    page = (FOLDER / "SABOTAGE.md").read_text(encoding="utf-8")
    assert page.partition("## Results\n")[2].strip() == script.table(result()).strip()


@measured
def test_every_case_was_tried_and_is_one_of_its_own(script: ModuleType) -> None:
    names = [case.name for case in script.CASES]
    assert len(set(names)) == len(names) >= 20
    assert [case["case"] for case in result()["cases"]] == names


def test_a_case_is_right_only_when_exactly_its_names_are_said(script: ModuleType) -> None:
    case = script.Case("x", lambda scene: None, ("labels",), ("data file of train",))
    assert script.is_right(case, "different", ["labels"])
    assert script.is_right(case, "different", ["labels", "data file of train"])
    assert not script.is_right(case, "different", ["data file of train"])
    assert not script.is_right(case, "different", ["labels", "rows"])
    assert not script.is_right(case, "bitwise equal", ["labels"])


def test_the_data_is_the_same_every_time(script: ModuleType, tmp_path: Path) -> None:
    tasks = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        tasks.append(script.write_data(tmp_path / name))
    for split in script.ROWS:
        one, two = ((tmp_path / name / f"{split}.csv").read_bytes() for name in ("one", "two"))
        assert one == two and one.count(b"\n") > script.ROWS[split]
    assert tasks[0].test == tmp_path / "one" / "test.csv"
