"""The contract of `leaderboard.json`."""

from __future__ import annotations

import json

import pytest
from boards import board, broken, dropped, hits, price, raced, row, usual

from graftwork.compare.assemble import RowRuns, median_costs
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult


def test_keys_and_types() -> None:
    made = board(usual(), search_costs={"wall_seconds": Cost(900.0, "s", "meter")}, data_report={"warnings": ["w"]})
    assert made == json.loads(json.dumps(made))
    assert made["format"] == 1
    assert made["headline_metric"] == "accuracy"
    assert made["task"]["name"] == "toy"
    assert made["backbone"] == {"id": "tiny"}
    assert made["search_costs"] == {"wall_seconds": {"value": 900.0, "unit": "s", "grade": "meter"}}
    assert made["data_report"] == {"warnings": ["w"]}
    assert made["race"] is None
    assert made["frontier"] == ["majority", "linear_probe", "adapter", "full"]
    for item in made["rows"]:
        assert {type(item[key]) for key in ("config", "scores", "costs")} == {dict}
        assert item["status"] in ("ok", "failed", "out_of_memory", "dropped")
        assert isinstance(item["n_seeds"], int)
        assert isinstance(item["below_majority"], bool)
        assert item["dropped"] is None
        assert all(isinstance(run, str) for run in item["runs"])
        assert all(set(score) == {"mean", "sd", "low", "high"} for score in item["scores"].values())
        assert all(set(cost) == {"value", "unit", "grade"} for cost in item["costs"].values())
    for pair in made["differences"]:
        assert {"a", "b", "metric", "delta", "low", "high", "p_a_better", "verdict"} <= set(pair)
        assert pair["verdict"] in ("better", "worse", "cannot tell")
        assert 0 <= pair["p_a_better"] <= 1


def test_best_first_and_failed_last() -> None:
    made = board(usual())
    assert [item["method"] for item in made["rows"]] == ["full", "adapter", "linear_probe", "majority", "lora"]
    assert made["rows"][-1]["scores"] == {}
    assert made["rows"][-1]["costs"]["train_seconds"]["value"] == 1.5
    assert len(made["differences"]) == 6
    assert all("lora" not in (pair["a"], pair["b"]) for pair in made["differences"])


def test_a_dropped_row_stands_between_the_scored_and_the_failed_without_a_score() -> None:
    losers = (dropped("bitfit", 0.5), dropped("top_layers", 0.6))
    made = board([losers[0], broken("lora"), losers[1], row("full", 0.9, 10), row("adapter", 0.8, 5)],
                 race=raced(*losers))  # fmt: skip
    assert made == json.loads(json.dumps(made))
    assert [item["method"] for item in made["rows"]] == ["full", "adapter", "top_layers", "bitfit", "lora"]
    item = made["rows"][3]
    assert (item["status"], item["scores"], item["costs"], item["n_seeds"]) == ("dropped", {}, {}, 0)
    assert item["runs"] == ["bitfit-trial"]
    assert (item["n_failed"], item["below_majority"]) == (0, False)
    assert item["dropped"]["validation"] == 0.5
    assert [(pair["a"], pair["b"]) for pair in made["differences"]] == [("full", "adapter")]
    assert made["frontier"] == ["adapter", "full"]
    assert made["race"]["rule"] == "The rule."


def test_whole_runs_of_a_dropped_row_are_listed_and_priced_but_not_scored() -> None:
    whole, note = row("bitfit", 0.5, 7, seeds=2), dropped("bitfit", 0.5)
    (item,) = board([RowRuns("bitfit", {}, "dropped", whole.runs, note.trials, note.dropped)])["rows"]
    assert (item["scores"], item["n_seeds"], item["runs"]) == ({}, 0, ["bitfit-trial", "bitfit-0", "bitfit-1"])
    assert item["costs"]["train_seconds"]["value"] == 7.5


def test_below_majority() -> None:
    made = board([row("majority", 0.5, 0.1), row("lost", 0.2, 1), row("good", 0.7, 1)])
    assert {item["method"]: item["below_majority"] for item in made["rows"]} == {
        "good": False,
        "majority": False,
        "lost": True,
    }
    assert not any(item["below_majority"] for item in board([row("lost", 0.2, 1)])["rows"])


def test_costs_are_medians_with_the_worst_grade() -> None:
    results = [RunResult(str(at), at, "ok", costs=price(seconds)) for at, seconds in enumerate((1.0, 9.0, 2.0))]
    results.append(RunResult("3", 3, "ok", costs={"train_seconds": Cost(2.0, "s", "guess")}))
    costs = median_costs(results)
    assert costs["train_seconds"] == {"value": 2.0, "unit": "s", "grade": "guess"}
    assert costs["co2e_grams"] == {"value": None, "unit": "g", "grade": "model"}
    assert costs["total_seconds"]["value"] == 4.0


def test_costs_of_failed_runs_stay_out_of_a_row_that_has_scores() -> None:
    good = row("full", 0.9, 10, seeds=5)
    lost = RunResult("full-9", 9, "failed", costs=price(10_000.0), error="diverged")
    made = board([RowRuns("full", {}, "ok", (*good.runs, (lost, {})))])
    (item,) = made["rows"]
    assert (item["n_seeds"], item["n_failed"], item["errors"]) == (5, 1, ["diverged"])
    assert item["costs"]["train_seconds"]["value"] == 12
    assert any("1 of 6 runs did not finish" in note for note in made["notes"])


@pytest.mark.parametrize(("seeds", "said"), [(1, True), (4, True), (5, False)])
def test_too_few_runs_are_said(seeds: int, said: bool) -> None:
    made = board([row("full", 0.9, 10, seeds), row("majority", 0.3, 0.1, seeds)])
    assert any("not enough runs to rank" in note for note in made["notes"]) is said


def test_one_run_each_gives_no_verdict() -> None:
    made = board([row("full", 0.9, 10, 1), row("adapter", 0.4, 5, 1)])
    assert [pair["verdict"] for pair in made["differences"]] == ["cannot tell"]


def test_a_board_of_failures_is_a_board() -> None:
    made = board([broken("full"), broken("lora")])
    assert (made["frontier"], made["differences"]) == ([], [])


def test_scores_are_fractions_with_their_spread() -> None:
    (item,) = board([row("full", 0.9, 10)])["rows"]
    runs = [float(hits(0.9, seed).mean()) for seed in range(5)]
    score = item["scores"]["accuracy"]
    assert score["mean"] == pytest.approx(sum(runs) / 5)
    assert 0 < score["low"] < score["mean"] < score["high"] <= 1
