"""The benchmark of kills: what it kills, how it tells what was lost, and when it says that it passed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graftwork.io.files import read_json
from graftwork.registry import methods

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"


@pytest.fixture(scope="module")
def kills(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("robust/kills")


def found(kills: int = 60, lost: float = 0.2, checkpoint: bool = True, **changes: Any) -> dict[str, Any]:
    listed = [{"where": "stepping", "with_a_checkpoint": checkpoint, "lost_seconds": lost}] * kills
    return {"case": "a", "kills": listed, "equal": True} | changes


def test_every_method_kind_and_objective_is_killed(kills: ModuleType, tmp_path: Path) -> None:
    names = [case.name for case in kills.cases(tmp_path)]
    assert len(set(names)) == len(names) and len(names) * kills.KILLS >= 60
    by_gradient = {"full", "top_layers", "adapter", "lora", "bitfit", "ulmfit", "contrastive"}
    assert by_gradient <= set(methods.names())
    for method in by_gradient:
        for precision in ("fp32", "bf16"):
            assert any(f"{method}" in name and precision in name for name in names), (method, precision)
    assert {name.split(",")[0] for name in names} == {"classification", "tagging", "span", "images", "pretrain"}
    objectives = {path.stem for path in (FOLDER.parents[1] / "src/graftwork/pretrain/objectives").glob("[!_]*.py")}
    assert {words[1].partition(":")[0] for words in kills.OBJECTIVES} == objectives


@pytest.mark.parametrize(
    ("cases", "paid", "expected"),
    [
        ([found()], {"share": 0.01}, "ok"),
        ([found(59)], {"share": 0.01}, "partial"),
        ([found()], None, "partial"),
        ([found(checkpoint=False)], {"share": 0.01}, "partial"),
        ([found(), found(checkpoint=False, case="b")], {"share": 0.01}, "partial"),
        ([found(equal=False)], {"share": 0.01}, "failed"),
        ([found(lost=9.0)], {"share": 0.01}, "failed"),
        ([found()], {"share": 0.02}, "failed"),
        ([found(), {"case": "b", "equal": False, "failed": "RuntimeError"}], {"share": 0.01}, "failed"),
    ],
)
def test_what_passes(
    cases: list[dict[str, Any]], paid: dict[str, Any] | None, expected: str, kills: ModuleType
) -> None:
    assert kills.status(kills.summary(cases, paid)) == expected


def test_what_was_lost_before_a_checkpoint_counts_from_the_first_step(kills: ModuleType, tmp_path: Path) -> None:
    case = kills.Case("a", ())
    assert kills.last_kept(case, tmp_path) is None
    folder = tmp_path / ".0123.checkpoint"
    folder.mkdir()
    for number, when in ((1, 50), (2, 60)):
        (folder / f"{number}.json").touch()
        os.utime(folder / f"{number}.json", (when, when))
    assert kills.last_kept(case, tmp_path) == 60


def test_marks_are_read_by_another_while_they_are_written(kills: ModuleType, tmp_path: Path) -> None:
    own, other = kills.Marks(tmp_path / "marks"), kills.Marks(tmp_path / "marks")
    assert other.read() == (kills.BEFORE, 0, 0.0)
    before = time.time()
    own.write(kills.STEPPING, 0)
    own.write(kills.STEPPING, 7)
    where, steps, began = other.read()
    assert (where, steps) == (kills.STEPPING, 7) and before <= began <= time.time()
    own.close()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("words", ["classification, full, fp32", "pretrain, causal"])
def test_a_case_is_tried(words: str, kills: ModuleType, tmp_path: Path) -> None:
    (case,) = (case for case in kills.cases(tmp_path) if case.name == words)
    told = kills.tried(case, tmp_path, 3)
    assert told["equal"], told
    assert [kill["where"] for kill in told["kills"]] == ["stepping", "before", "stepping"]
    assert all(kill["with_a_checkpoint"] for kill in told["kills"])


def test_what_was_not_run_is_told(kills: ModuleType, tmp_path: Path) -> None:
    asked = [kills.Case(name, ()) for name in ("a", "b")]
    measured = kills.write_result(tmp_path / "out" / "kills.json", [found()], asked, {"share": 0.01})
    content = read_json(tmp_path / "out" / "kills.json")
    assert measured["not_run"] == ["b"] and (content["status"], content["format"]) == ("partial", 1)
    measured = kills.write_result(tmp_path / "out" / "kills.json", [found()], asked[:1], {"share": 0.01})
    assert read_json(tmp_path / "out" / "kills.json")["status"] == "ok"
