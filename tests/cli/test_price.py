"""`graft price`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftwork.cli.main import main

COSTS = {
    "total_seconds": {"value": 10.0, "unit": "s", "grade": "meter"},
    "energy_joules": {"value": 100.0, "unit": "J", "grade": "guess"},
    "predict_per_second": {"value": 100.0, "unit": "per second", "grade": "meter"},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in a folder of runs."""
    folder = tmp_path / "runs" / "0123456789ab"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"costs": COSTS, "scores": {"accuracy": 0.5}}))
    (folder / "spec.json").write_text(json.dumps({"method": {"name": "adapter", "version": 1}}))
    return folder


def test_a_run_is_named_by_its_folder_or_its_id(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", str(run), "--predictions", "1,000"]) == 0
    assert capsys.readouterr().out.startswith("1,000 predictions in full batches: adapter costs 20 s")
    assert main(["price", "0123", "--runs", str(run.parent), "--predictions", "1e3", "--json"]) == 0
    total = json.loads(capsys.readouterr().out)["rows"][0]["in_batches"]["seconds"]["total"]
    assert (total["value"], total["unit"]) == (20.0, "s")


def test_a_page_is_written(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", str(run), "--predictions", "1e3", "--report", str(tmp_path / "p.html")]) == 0
    assert "What 1,000 predictions cost" in (tmp_path / "p.html").read_text()


def test_what_is_no_number_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", str(run), "--predictions", "many"]) == 2
    assert "not a number of predictions" in capsys.readouterr().err
