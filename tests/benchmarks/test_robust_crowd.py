"""The crowd: what it counts as lost, repeated or different, and a round without a kill's luck."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from graftwork.io.files import write_json

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"
ONE, OTHER = "0123456789ab", "ba9876543210"


@pytest.fixture(scope="module")
def crowd(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("robust/crowd")


@pytest.mark.parametrize(
    ("lines", "killed", "found"),
    [
        (["ended a 1 0", "placed a 1 0", "ended b 2 0", "placed b 2 0"], set(), []),
        (["ended a 1 0", "placed a 1 0", "ended a 2 0", "placed a 2 0"], set(), ["a"]),
        (["ended a 1 0", "ended a 2 0", "placed a 2 0", "placed a 1 0"], {1}, ["a"]),
        (["ended a 1 0", "ended a 2 0", "placed a 2 0"], {1}, []),  # killed before it had its name
        (["ended a 1 0", "ended a 2 0", "placed a 2 0"], {3}, ["a"]),
    ],
)
def test_what_is_repeated(crowd: ModuleType, lines: list[str], killed: set[int], found: list[str]) -> None:
    assert crowd.repeated(lines, killed) == found


def test_what_is_lost(crowd: ModuleType, tmp_path: Path) -> None:
    watched = crowd.Crowd(tmp_path, (), random.Random(0))
    for run in (ONE, OTHER, "cc"):
        write_json(tmp_path / "runs" / run / "result.json", {"run": run})
    watched.look()
    assert watched.lost() == []
    write_json(tmp_path / "runs" / ONE / "result.json", {"run": "again"})
    (tmp_path / "runs" / OTHER / "result.json").unlink()
    assert watched.lost() == [ONE, OTHER]


def test_what_is_different_and_what_is_left_over(crowd: ModuleType, tmp_path: Path) -> None:
    for root in ("one", "other"):
        for run in (ONE, OTHER):
            write_json(tmp_path / root / "runs" / run / "result.json", {"time": root})
            write_json(tmp_path / root / "runs" / run / "spec.json", {"run": run})
    places = tmp_path / "one/runs", tmp_path / "other/runs"
    assert crowd.different_runs(*places) == []
    write_json(tmp_path / "other/runs" / ONE / "spec.json", {"run": 1})
    write_json(tmp_path / "other/runs/dd/result.json", {})
    write_json(tmp_path / "other/runs/dd/spec.json", {})
    assert crowd.different_runs(*places) == [ONE, "dd"]
    (tmp_path / "one/cache").mkdir()
    (tmp_path / "one/cache/.lock").touch()
    assert crowd.left_over(tmp_path / "one") == []
    (tmp_path / f"one/runs/.{ONE}.claim").touch()
    assert crowd.left_over(tmp_path / "one") == [f"runs/.{ONE}.claim"]


def test_prices_are_no_part_of_a_board(crowd: ModuleType) -> None:
    board = {name: [] for name in crowd.KEPT} | {"search_costs": 1, "environment": 2}
    one = crowd.projection(board | {"rows": [{"runs": ["a"], "costs": 1, "dropped": {"cost": 1, "stage": "x"}}]})
    assert one["rows"] == [{"runs": ["a"], "dropped": {"stage": "x"}}] and "environment" not in one


def test_the_witness_tells_of_ends_and_names(crowd: ModuleType, tmp_path: Path) -> None:
    """As every process of the crowd runs it, before its own code."""
    code = f"""
import os
os.makedirs("runs/.{ONE}.abcd_012")
open("runs/.{ONE}.abcd_012/x", "w").close()
os.replace("runs/.{ONE}.abcd_012/x", "runs/.{ONE}.abcd_012/result.json")
os.rename("runs/.{ONE}.abcd_012", "runs/{ONE}")
os.rename("runs/{ONE}/result.json", "runs/{ONE}/other.json")
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=crowd.surroundings(tmp_path), check=True)
    told = [line.split()[:2] for line in (tmp_path / "ends.log").read_text().splitlines()]
    assert told == [["ended", ONE], ["placed", ONE]]


@pytest.mark.slow
def test_a_small_crowd(crowd: ModuleType, tmp_path: Path) -> None:
    found = crowd.measured(tmp_path / "work", 1, "majority,lora", 0, (40, 1, 1))
    assert found["kills"] == 1 and found["runs"] >= 2
    assert not any(found[name] for name in crowd.BAR if name != "kills_at_least") and not found["told"]["errors"]
