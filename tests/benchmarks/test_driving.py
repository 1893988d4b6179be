"""What the drivers of boards share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from graftwork.core.task import Task

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "driving.py"


@pytest.fixture(scope="module")
def driving(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("driving")


def test_flags_and_where_a_board_is_made(
    driving: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "one").mkdir(parents=True)
    lines = [f"a film {number},{'yes' if number % 2 else 'no'}" for number in range(40)]
    (tmp_path / "data" / "one" / "all.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    chosen = driving.flags(None, ("one", "two"), threads=torch.get_num_threads()).parse_args(["--data", "data"])
    assert chosen.names == ["one", "two"] and not hasattr(driving.flags(None).parse_args(["--data", "data"]), "names")
    runs = driving.begun(chosen)
    assert runs == tmp_path / "runs" and Path.cwd() == tmp_path / "data"
    task = Task.from_file(Path("one") / "all.csv", name="one")
    for said in ("1 runs executed, 0 reused", "0 runs executed, 1 reused"):
        driving.compared(task, methods="majority", seeds=1, jobs=1, out=tmp_path / "board", runs=runs)
        assert f"one: {said}" in capsys.readouterr().out
    assert (tmp_path / "board" / "leaderboard.json").is_file()


def test_one_line_for_each_run(driving: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    driving.say(0.25, "lora seed 1: starting")
    driving.say(0.3, "lora seed 1: epoch 1/3")
    assert capsys.readouterr().out == " 25.0%  lora seed 1\n"
