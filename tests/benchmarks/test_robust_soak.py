"""The soak: what it holds to be a difference, what it counts, and a short one from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robust"
ROW = {"method": "lora", "scores": {"accuracy": {"mean": 0.5}}, "runs": ["aa"], "status": "ok", "costs": {"seconds": 1}}


@pytest.fixture(scope="module")
def script(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("robust/soak")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run and the board that it is on."""
    run = tmp_path / "runs" / "aa"
    (run / "module").mkdir(parents=True)
    lines = [{"split": "validation", "prediction": "x"}, {"split": "test", "prediction": "y"}]
    (run / "predictions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (run / "module" / "delta.safetensors").write_bytes(b"weights")
    (run / "result.json").write_text("{}")
    write_board(tmp_path, ROW)
    return tmp_path / "runs"


def write_board(folder: Path, row: dict[str, Any]) -> None:
    (folder / "board").mkdir(exist_ok=True)
    (folder / "board" / "leaderboard.json").write_text(json.dumps({"rows": [row]}))


@pytest.fixture
def reference(script: ModuleType, runs: Path) -> Any:
    (runs.parent / "test.csv").write_text("text,label\nwhere is it,y\n")
    return script.Reference.of(script.Scene(runs.parent, "tiny_text"), runs)


def test_a_round_that_is_the_same_has_no_difference(script: ModuleType, runs: Path, reference: Any) -> None:
    assert reference.answers == {"lora": {"where is it": "y"}}
    write_board(runs.parent, ROW | {"costs": {"seconds": 2}})  # prices may differ
    assert script.compared(reference, runs, runs.parent / "board") == []


@pytest.mark.parametrize("file", ["predictions.jsonl", "module/delta.safetensors"])
def test_another_byte_of_a_run_is_a_difference(script: ModuleType, runs: Path, reference: Any, file: str) -> None:
    path = runs / "aa" / file
    path.write_bytes(path.read_bytes() + b" ")
    assert script.compared(reference, runs, runs.parent / "board") == [f"run aa differs: {file}"]


def test_missing_runs_other_scores_and_leftovers_are_differences(
    script: ModuleType, runs: Path, reference: Any
) -> None:
    (runs / "aa" / "result.json").rename(runs / "result.json")
    (runs / ".aa.k3x9").mkdir()
    write_board(runs.parent, ROW | {"status": "failed"})
    found = script.compared(reference, runs, runs.parent / "board")
    assert found == ["run aa is missing", "the board has other scores", "left behind: a folder of a run, k3x9"]
    assert "there is no leaderboard.json" in script.compared(reference, runs, runs)


def test_failures_are_counted_and_told_without_folders(script: ModuleType, tmp_path: Path) -> None:
    failures = script.Failures(tmp_path)
    failures.note("round 0", "")
    for _ in range(script.MOST_TOLD + 5):
        failures.note("round 1", f"cannot open {tmp_path}/runs/x")
    assert failures.count == script.MOST_TOLD + 5 and len(failures.told) == script.MOST_TOLD
    assert failures.told[0] == {"where": "round 1", "what": "cannot open FOLDER/runs/x"}


@pytest.mark.parametrize(("code", "said", "wrong"), [(0, "well", False), (3, "", True), (0, "Traceback", True)])
def test_how_a_process_ended(script: ModuleType, tmp_path: Path, code: int, said: str, wrong: bool) -> None:
    log = tmp_path / "x.log"
    with log.open("wb") as stream:
        program = f"import sys; print({said!r}); sys.exit({code})"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=stream)
    assert bool(script.Command("x", process, log).end()) == wrong


def test_every_bar_must_be_measured_and_met(script: ModuleType) -> None:
    met = dict.fromkeys(script.BAR, 0)
    assert script.missed(met) == []
    assert script.missed(met | {"server_growth_bytes": 50_000_001}) == ["server_growth_bytes"]
    assert script.missed(met | {"failures": 1}) == ["failures"]
    assert script.missed({}) == list(script.BAR)


def test_the_data_is_the_same_every_time(script: ModuleType, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        script.write_data(tmp_path / name)
    rows = {split: script.rows_of(tmp_path / "one" / f"{split}.csv") for split in script.ROWS}
    assert {split: len(found) for split, found in rows.items()} == script.ROWS
    assert len({row["text"] for found in rows.values() for row in found}) == sum(script.ROWS.values())
    assert {row["label"] for row in rows["train"]} == {row["label"] for row in rows["test"]}
    for split in script.ROWS:
        assert (tmp_path / "one" / f"{split}.csv").read_bytes() == (tmp_path / "two" / f"{split}.csv").read_bytes()


@pytest.mark.slow
def test_a_short_one_from_end_to_end(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "soak.py"), "--minutes", "0", "--rounds", "1", "--warm-up", "1"]
    subprocess.run([*command, "--backbone", "tiny_text", "--out", str(tmp_path)], check=True, timeout=1200)
    told = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))
    assert told["status"] == "ok" and told["told"] == []
    assert told["measured"]["rounds"] == 2 and told["measured"]["statuses"].keys() == {"200"}
    assert str(tmp_path) not in json.dumps(told)
