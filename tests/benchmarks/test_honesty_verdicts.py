"""The simulation of verdicts is of the model it tells, and its table stands in the README."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "honesty"
SPEC = importlib.util.spec_from_file_location("honesty_verdicts", FOLDER / "verdicts.py")
assert SPEC is not None and SPEC.loader is not None
benchmark = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = benchmark  # its dataclasses look themselves up there
SPEC.loader.exec_module(benchmark)
BEHIND = {
    "10 times as much, no method x example, 5 and 5 seeds": 0.04
}  # the goal is missed here, and the README says so
MEASURED = pytest.mark.skipif(not benchmark.RESULTS.is_file(), reason="verdicts.py has not been run")


def test_equal_methods_are_right_on_the_same_share_however_their_seeds_scatter() -> None:
    cell = benchmark.Cell("here", seeds=(20, 20), seed_sds=(1.0, 4.0), examples=100)
    found = benchmark.simulated(cell, 400, 0.0, np.random.default_rng(0))
    steady, lucky = (right.mean(axis=(1, 2)) for right in found.right)
    assert steady.mean() == pytest.approx(0.85, abs=0.006)
    assert lucky.mean() == pytest.approx(0.85, abs=0.006)
    apart = benchmark.simulated(cell, 400, 0.1, np.random.default_rng(0))
    assert apart.right[1].mean() == pytest.approx(0.75, abs=0.008)


def test_seeds_scatter_as_told() -> None:
    cell = benchmark.Cell("here", seeds=(2, 40), seed_sds=(0.0, 3.0), examples=4000, own=0.0)
    found = benchmark.simulated(cell, 6, 0.0, np.random.default_rng(1))
    assert found.right[1].mean(axis=2).std(axis=1, ddof=1).mean() == pytest.approx(0.03, abs=0.004)
    assert np.abs(np.diff(found.right[0].mean(axis=2), axis=1)).mean() < 0.01


def test_a_failed_run_is_right_where_the_majority_class_is() -> None:
    found = benchmark.simulated(benchmark.Cell("here", failing=0.5), 3, 0.0, np.random.default_rng(2))
    pair, seed = map(int, np.argwhere(found.failed[0])[0])
    assert np.array_equal(found.right[0][pair, seed], found.majority[pair])


def test_verdicts_are_the_products() -> None:
    cell = benchmark.Cell("here", failing=0.3, examples=200)
    near, far = (benchmark.simulated(cell, 12, apart, np.random.default_rng(3)) for apart in (0.0, 0.6))
    assert np.abs(benchmark.verdicts(near, 100, 0)).mean() < 0.4
    steady = benchmark.simulated(replace(cell, failing=0.0), 12, 0.3, np.random.default_rng(4))
    assert benchmark.verdicts(steady, 100, 0).tolist() == [1] * 12
    assert set(benchmark.verdicts(far, 100, 0)) <= {0, 1}


def test_interrupted_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"false": {benchmark.OURS: 0.04}, "power": {benchmark.OURS: 0.7}, "cpu_seconds": 1.0}
    monkeypatch.setattr(benchmark, "speed", lambda rows: {})
    monkeypatch.setattr(benchmark, "draws_matter", lambda pairs, few: {})
    monkeypatch.setattr(benchmark, "measured", lambda cell, **wanted: rates | wanted)
    monkeypatch.setattr(benchmark, "ProcessPoolExecutor", Here)
    command = ["--out", str(tmp_path / "v.json"), "--pairs", "10", "--power-pairs", "5"]
    benchmark.main([*command, "--only", "100 examples"])
    assert len(json.loads((tmp_path / "v.json").read_text())["cells"]) == 2
    capsys.readouterr()
    benchmark.main(command)
    assert f"1/{len(benchmark.CELLS) - 2} " in capsys.readouterr().out
    assert len(json.loads((tmp_path / "v.json").read_text())["cells"]) == len(benchmark.CELLS)


class Here:
    """Cells in this process."""

    def __init__(self, jobs: int) -> None:
        self.map = map

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@MEASURED
def test_the_readme_shows_the_committed_numbers() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("<!-- verdicts -->\n")[2].partition("<!-- end of verdicts -->")[0]
    content = json.loads(benchmark.RESULTS.read_text(encoding="utf-8"))
    assert shown.strip() == benchmark.table(content).strip()
    assert {benchmark.key_of(cell) for cell in benchmark.CELLS} <= content["cells"].keys()


@MEASURED
def test_the_goals_are_met() -> None:
    """As committed: at most 5 % of equal pairs told apart, and power within 3 points of the best valid test."""
    for name, result in json.loads(benchmark.RESULTS.read_text(encoding="utf-8"))["cells"].items():
        assert result["false"][benchmark.OURS] <= 0.05, name
        assert benchmark.best_valid(result)[1] - result["power"][benchmark.OURS] <= BEHIND.get(name, 0.03), name
