"""The contract of `leaderboard.json`."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from boards import METRICS, board, broken, decision, hits, partly, price, row, usual

from graftwork.compare.advice import advice
from graftwork.compare.leaderboard_data import RowRuns, median_costs
from graftwork.compare.majority_floor import Floor
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
    assert made["race"] is None and made["decision"] is None
    assert made["frontier"] == ["majority", "linear_probe", "adapter", "full"]
    for item in made["rows"]:
        assert {type(item[key]) for key in ("config", "scores", "costs")} == {dict}
        assert item["status"] in ("ok", "failed", "diverged", "out_of_memory")
        assert (item["n_diverged"], item["counted"] is None) == (0, not item["scores"])
        assert isinstance(item["n_seeds"], int)
        assert isinstance(item["below_majority"], bool)
        assert item["dropped"] is None
        assert all(isinstance(run, str) for run in item["runs"])
        assert all(set(score) == {"mean", "sd", "low", "high"} for score in item["scores"].values())
        assert all(set(cost) == {"value", "unit", "grade"} for cost in item["costs"].values())
    for pair in made["differences"]:
        assert {"a", "b", "metric", "delta", "low", "high", "p_a_better", "verdict", "runs", "failed"} <= set(pair)
        assert pair["aso"].keys() == {"of", "epsilon", "epsilon_min", "confidence"}
        assert pair["aso"]["confidence"] == pytest.approx(1 - 0.05 / 6)
        assert pair["verdict"] in ("better", "worse", "cannot tell")
        assert 0 <= pair["p_a_better"] <= 1


def test_best_first_and_failed_last() -> None:
    made = board(usual())
    assert [item["method"] for item in made["rows"]] == ["full", "adapter", "linear_probe", "majority", "lora"]
    assert made["rows"][-1]["scores"] == {}
    assert made["rows"][-1]["costs"]["train_seconds"]["value"] == 1.5
    assert len(made["differences"]) == 6
    assert all("lora" not in (pair["a"], pair["b"]) for pair in made["differences"])


def test_equal_means_stand_by_name_in_whatever_order_they_were_added_up() -> None:
    def of_hits(method: str, *right: int) -> RowRuns:
        stats = [dict.fromkeys(METRICS, (np.arange(100) < hits).astype(np.float64)[:, None]) for hits in right]
        made = [(RunResult(f"{method}-{seed}", seed, "ok", costs=price(1)), of) for seed, of in enumerate(stats)]
        return RowRuns(method, {}, "ok", tuple(made))

    made = board([of_hits("b", 10, 20, 30), of_hits("a", 30, 20, 10)])
    assert len({row["counted"] for row in made["rows"]}) == 2, "else they would test nothing"
    assert [row["method"] for row in made["rows"]] == ["a", "b"] == made["frontier"]


def test_what_was_decided_is_kept_as_it_is() -> None:
    told = decision("full", {"full": 0.001, "adapter": 0.002})
    made = board(usual(), decision=told)
    assert made["decision"] == told and made == json.loads(json.dumps(made))


def _by(method: str, accuracy: float, macro_f1: float) -> RowRuns:
    """One run, whose two metrics differ."""
    result = RunResult(f"{method}-0", 0, "ok", costs=price(1.0))
    return RowRuns(method, {}, "ok", ((result, {"accuracy": hits(accuracy, 0), "macro_f1": hits(macro_f1, 0)}),))


def test_another_metric_that_ranks_a_method_above_the_chosen_one_is_told() -> None:
    """Only where its interval says so, and the headline metric does not say the same."""
    rows = [_by("copy", 0.6, 0.2), _by("adapter", 0.5, 0.4), _by("close", 0.4, 0.205), _by("best", 0.7, 0.5)]
    made = board(rows[:3], decision=decision("copy", {"copy": 0.001}))
    (told,) = made["disagreements"]
    assert (told["metric"], told["method"], told["chosen"]) == ("macro_f1", "adapter", "copy")
    assert 0 < told["low"] < told["delta"] < told["high"]
    assert advice(made)[1].startswith("By macro_f1 adapter is ahead: 35.0 to 18.0 (")
    assert not board([rows[0], rows[2]], decision=decision("copy", {"copy": 0.001}))["disagreements"]
    assert not board([rows[0], rows[3]], decision=decision("copy", {"copy": 0.001}))["disagreements"]
    assert not board(rows)["disagreements"], "nothing was chosen"


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


def of_rows(method: str, share: float, rows: int, alike: bool = False) -> RowRuns:
    """A row over a test split of few rows; with runs all alike, where a method has no luck of seeds."""
    runs = []
    for seed in range(5):
        right = hits(share, 0 if alike else seed, rows)
        result = RunResult(f"{method}-{seed}", seed, "ok", dict.fromkeys(METRICS, float(right.mean())), costs=price(1))
        runs.append((result, dict.fromkeys(METRICS, right)))
    return RowRuns(method, {}, "ok", tuple(runs))


@pytest.mark.parametrize(("rows", "said"), [(12, True), (20, False)])
def test_a_short_test_split_is_said(rows: int, said: bool) -> None:
    notes = board([of_rows("full", 0.9, rows), of_rows("majority", 0.3, rows)])["notes"]
    assert any(note.startswith("the test split has 12 rows") for note in notes) is said


@pytest.mark.parametrize("alike", [True, False])
def test_runs_that_are_all_alike_give_no_second_opinion(alike: bool) -> None:
    (pair,) = board([of_rows("svm", 0.9, 100, alike), of_rows("majority", 0.3, 100, alike=True)])["differences"]
    assert (pair["aso"] is None) is alike


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


def test_a_failed_run_counts_as_the_majority_class_in_verdicts_and_not_in_scores() -> None:
    made = board([row("majority", 0.3, 0.1), row("lora", 0.86, 10), partly("full", 0.9, 20, 0, 2)])
    rows = {item["method"]: item for item in made["rows"]}
    assert rows["full"]["scores"]["accuracy"]["mean"] > rows["lora"]["scores"]["accuracy"]["mean"]
    assert (rows["full"]["n_seeds"], rows["full"]["n_failed"], rows["full"]["n_diverged"]) == (3, 2, 2)
    floor = rows["majority"]["scores"]["accuracy"]["mean"]
    whole = rows["full"]["scores"]["accuracy"]["mean"]
    assert rows["full"]["counted"] == pytest.approx((3 * whole + 2 * floor) / 5, abs=5e-3)
    assert [item["method"] for item in made["rows"]] == ["lora", "full", "majority"]
    (pair,) = [pair for pair in made["differences"] if {pair["a"], pair["b"]} == {"lora", "full"}]
    assert (pair["a"], pair["runs"], pair["failed"], pair["verdict"]) == ("lora", [5, 5], [0, 2], "cannot tell")
    assert pair["delta"] == pytest.approx(rows["lora"]["counted"] - rows["full"]["counted"])
    assert "full: 2 of 5 runs did not finish; its scores are of the others; in the verdicts they count as the " \
        "majority class" in made["notes"]  # fmt: skip
    assert "full: 2 of 5 runs diverged or scored below the majority class" in made["notes"]


def test_failing_never_helps() -> None:
    """Were failed runs left out, a row would be better than its equal for having lost its worst runs."""
    whole, lost = row("whole", 0.9, 10), partly("lost", 0.9, 10, 0, 1, 2, 3)
    made = board([row("majority", 0.1, 0.1), whole, lost])
    (pair,) = [pair for pair in made["differences"] if {pair["a"], pair["b"]} == {"whole", "lost"}]
    assert (pair["a"], pair["verdict"]) == ("whole", "better")


def test_what_a_failed_run_counts_as_may_come_from_elsewhere() -> None:
    floor = Floor(dict.fromkeys(METRICS, hits(0.5, 0)), {"accuracy": 0.5})
    rows = [row("lora", 0.86, 10), partly("full", 0.9, 20, 0), row("odd", 0.4, 1)]
    made = board(rows, floor=floor)
    assert made["majority"] == pytest.approx(hits(0.5, 0).mean())
    assert {item["method"]: item["below_majority"] for item in made["rows"]} == {
        "lora": False, "full": False, "odd": True,
    }  # fmt: skip
    assert {item["method"]: item["n_diverged"] for item in made["rows"]} == {"lora": 0, "full": 1, "odd": 5}
    assert "odd: 5 of 5 runs diverged or scored below the majority class, and so does their mean" in made["notes"]


def test_runs_below_the_majority_class_are_counted_without_failing() -> None:
    sunk = RunResult("full-4", 4, "ok", {"accuracy": 0.1}, costs=price(1.0))
    runs = (*row("full", 0.9, 10).runs[:4], (sunk, dict.fromkeys(METRICS, hits(0.1, 4))))
    made = board([row("majority", 0.3, 0.1), RowRuns("full", {}, "ok", runs)])
    item = made["rows"][0]
    assert (item["n_seeds"], item["n_failed"], item["n_diverged"], item["below_majority"]) == (5, 0, 1, False)


def test_the_sources_that_were_held_are_said() -> None:
    made = board(usual(), varied=("order",))
    assert made["statistics"]["varied"] == ["order"]
    assert made["notes"][0] == (
        "only order varies between runs, init and augmentation are held as in seed 0: spreads, intervals and verdicts "
        "are of that alone"
    )
    assert not any("held" in note for note in board(usual())["notes"])


def test_what_more_tries_bring() -> None:
    runs = [
        (RunResult(f"full-{at}", at, "ok", {"accuracy": score}, {"accuracy": score}, price(10.0)), stats)
        for at, (score, (_, stats)) in enumerate(zip((0.8, 0.9, 0.7), row("full", 0.9, 1).runs[:3], strict=True))
    ]
    made = board([RowRuns("full", {}, "ok", tuple(runs)), row("majority", 0.3, 0.1)])
    (seeds,) = made["expected_best"]
    assert (seeds["method"], seeds["of"], seeds["cost"]) == ("full", "seeds", "train_seconds")
    assert [point["cost"] for point in seeds["points"]] == [10.0, 20.0, 30.0]
    assert seeds["points"][0]["score"] == pytest.approx(0.8)


def test_shots_that_do_not_fit_are_noted() -> None:
    prompted = row("prompt", 0.9, 1.0)
    result, stats = prompted.runs[0]
    short = replace(prompted, runs=((replace(result, facts={"shots_dropped": 3}), stats), *prompted.runs[1:]))
    found = [[note for note in board([one])["notes"] if "shots" in note] for one in (short, prompted)]
    assert found == [["prompt: up to 3 of its shots did not fit into the context, in 1 run"], []]


def test_batches_in_parts_are_noted() -> None:
    parted = row("adapter", 0.9, 1.0)
    result, stats = parted.runs[0]
    cut = {"accumulation": {"parts": 4, "steps": 1200, "cuts": []}}
    made = board([replace(parted, runs=((replace(result, facts=cut), stats), *parted.runs[1:])), row("full", 0.8, 9.0)])
    assert [note for note in made["notes"] if "memory" in note] == [
        "adapter: for want of memory 1,200 batches went through in up to 4 parts, whose gradients add up"
    ]
    facts = {"passes_in_parts": {"train": 1}, "answers_in_parts": {"evaluate": 2}}
    made = board([replace(parted, runs=((replace(result, facts=facts), stats), *parted.runs[1:]))])
    assert [note for note in made["notes"] if "memory" in note] == [
        "adapter: for want of memory the frozen network read its batches in parts, in 1 run; "
        "batches were answered in parts, in 1 run"
    ]
    made = board([replace(parted, runs=((replace(result, facts=facts | cut), stats), *parted.runs[1:]))])
    assert [note for note in made["notes"] if "memory" in note] == [
        "adapter: for want of memory 1,200 batches went through in up to 4 parts, whose gradients add up; "
        "the frozen network read its batches in parts, in 1 run; batches were answered in parts, in 1 run"
    ]
