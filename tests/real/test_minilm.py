"""The pretrained network that is installed with the package, adapted end to end on a slice of the built-in data."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import BUILTIN

pytestmark = pytest.mark.slow

METHODS = ["majority", "linear_probe", "adapter", "full"]
TEAMS, ROWS_A_TEAM = 3, 20


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    """Sixty rows: the first twenty of three teams."""
    with (BUILTIN / "tickets.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    teams = sorted({row["label"] for row in rows})[:TEAMS]
    kept = [row for team in teams for row in [row for row in rows if row["label"] == team][:ROWS_A_TEAM]]
    path = tmp_path / "tickets.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["text", "label"])
        writer.writeheader()
        writer.writerows(kept)
    return path


def test_minilm_is_adapted_and_its_modules_answer(tickets: Path, tmp_path: Path) -> None:
    settings = {"methods": METHODS, "seeds": 1, "epochs": 1, "exhaustive": True}
    board = gw.compare(tickets, **settings, out=tmp_path / "board", runs=tmp_path / "runs")
    assert board.content["backbone"]["id"] == "minilm"
    assert sum(board.content["task"]["rows"].values()) == TEAMS * ROWS_A_TEAM
    rows = {row["method"]: row for row in board.rows}
    assert rows.keys() == set(METHODS)
    accuracy = {name: row["scores"]["accuracy"]["mean"] for name, row in rows.items()}
    for name in METHODS[1:]:
        assert rows[name]["status"] == "ok"
        assert accuracy[name] > accuracy["majority"], name
    trained = {name: row["costs"]["trained_parameters"]["value"] for name, row in rows.items()}
    assert trained["linear_probe"] < trained["adapter"] < 0.04 * trained["full"]
    assert rows["adapter"]["costs"]["stored_bytes"]["value"] < 0.1 * rows["full"]["costs"]["stored_bytes"]["value"]

    again = gw.compare(tickets, **settings, out=tmp_path / "board", runs=tmp_path / "runs")
    assert (again.executed, again.reused) == (0, len(METHODS))

    module = gw.TaskModule.load(tmp_path / "runs" / rows["adapter"]["runs"][0])
    answers = module.predict(["I forgot my password and can't log in.", "You charged me twice for one order."])
    assert [answer["label"] for answer in answers] == ["account", "billing"]
    assert sum(answers[0]["probabilities"].values()) == pytest.approx(1)
