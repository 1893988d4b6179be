"""`graft compress` prints the table, and says by its exit code whether it wrote anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.cli.compress import compress_lines, plan_line
from graftwork.cli.main import main
from graftwork.core.configured_methods import parse_method
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.run.session import Session
from graftwork.run.train import train_in


@pytest.fixture(scope="module")
def module(kept_session: Callable[..., Session]) -> str:
    return str(train_in(kept_session(), parse_method("full"), Recipe(epochs=1), 0, silent).folder)


def test_the_table_is_printed(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = str(tmp_path / "small")
    assert main(["compress", module, small, "--allow", "100", "--for", "bytes", "--rungs", "merge,half"]) == 0
    out = capsys.readouterr().out
    assert (
        " none  " in out
        and "kept: no answer changes" in out
        and "Kept: merge, half." in out
        and f"Task module: {small}" in out
    )
    assert main(["predict", small, "a warm film"]) == 0
    assert main(["price", module, small, "--predictions", "1e6"]) == 0
    assert "full > merge > half" in capsys.readouterr().out


def test_what_will_be_tried_is_said_first(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = plan_line([("merge", None), ("distil:student=static", 12.0), ("distil", 200.0)])
    assert line == (
        "To try: merge, distil:student=static (about 20 s), distil (about 4 min); about 4 min of training at most. "
        "Choose with --rungs."
    )
    assert main(["compress", module, str(tmp_path / "small"), "--rungs", "half", "--runtime", "onyx"]) == 2
    assert main(["compress", module, str(tmp_path / "small"), "--rungs", "half", "--allow", "0"]) == 1
    assert "To try: half; none is trained." in capsys.readouterr().err


def test_a_folder_that_is_not_of_the_runtime_says_so() -> None:
    test = {"score": 0.9, "low": 0.8, "high": 1.0, "loss": 0.0, "loss_at_most": 0.01}
    found = {
        "task": "t", "metric": "accuracy", "positive": None, "original": {"method": "full", "bytes": 2}, "rows": 200,
        "allow": 2.0, "rungs": [], "rows_needed": 149, "price": {"cpu_seconds": 1.0}, "kept": ["merge"],
        "module": "small", "test": test, "bytes": 1, "speed_ratio": 1.0, "runtime": "onnx", "exported": False,
    }  # fmt: skip
    assert "No rung of onnx is kept: the folder is a module for torch." in compress_lines(found)
    assert not any("No rung" in line for line in compress_lines(found | {"exported": True}))


def test_rows_that_are_too_few_say_what_they_can_show() -> None:
    found = {
        "task": "t", "metric": "accuracy", "positive": None, "original": {"method": "full", "bytes": 2}, "rows": 41,
        "allow": 0.5, "rungs": [], "rows_needed": 598, "price": {"cpu_seconds": 1.0}, "kept": [], "module": None,
        "reason": "no rung applies",
    }  # fmt: skip
    few, nothing = compress_lines(found)[-2:]
    assert few == "41 rows of validation can't show a loss below 7.1 points: allow that much, or validate on 598 rows."
    assert nothing == "Nothing is written: no rung applies. The search took 1 s of processor time."
    assert "No number of rows" in compress_lines(found | {"rows_needed": None})[-2]


def test_nothing_kept_is_exit_code_1(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", module, str(tmp_path / "small"), "--allow", "0", "--rungs", "half", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["module"] is None
    assert main(["compress", module, str(tmp_path / "small"), "--allow", "-1"]) == 2
    assert "0 or more" in capsys.readouterr().err
