"""The sentences say what the numbers say."""

from __future__ import annotations

import pytest
from boards import board, partly, row, usual

from graftwork.compare.sentences import few_runs, points, search_line, sentence, verdict, verdicts
from graftwork.core.meter import Cost


@pytest.mark.parametrize(("seeds", "few"), [(1, 1), (4, 4), (5, None)])
def test_not_enough_runs_are_those_of_the_row_with_the_fewest(seeds: int, few: int | None) -> None:
    made = board([row("majority", 0.3, 0.1), row("full", 0.9, 10, seeds), row("lora", 0.7, 5)])
    assert few_runs(made) == few


def test_failed_runs_are_runs_that_were_made() -> None:
    assert few_runs(board([row("majority", 0.3, 0.1), partly("full", 0.9, 10, 1, 3)])) is None


def test_the_majority_class_is_told_of_in_one_line_only_where_every_method_is_better() -> None:
    """A row whose failed runs count low may not be shown to be better, and then each is told by itself."""
    rows = [row("majority", 0.5, 0.1), row("tfidf_svm", 0.6, 0.5), row("linear_probe", 0.75, 1)]
    made = board([*rows, partly("full", 0.95, 10, 0, 1)])
    assert made["rows"][0]["method"] == "full"
    assert verdict(made, "full", "majority") == "cannot tell" == verdict(made, "full", "tfidf_svm")
    assert (
        verdict(made, "linear_probe", "tfidf_svm") == "better" and verdict(made, "tfidf_svm", "linear_probe") == "worse"
    )
    lines = verdicts(made)
    assert not any("every other" in line for line in lines)
    assert any(line.startswith("tfidf_svm is better than majority") for line in lines)


def test_one_row_has_no_verdict() -> None:
    assert verdicts(board([row("full", 0.9, 10)])) == [] and verdict(board(usual()), "full", "lost") is None


def test_runs_side_by_side_are_said_to_be() -> None:
    made = board(usual()) | {"search_costs": {"total_seconds": {"value": 60.0, "unit": "s", "grade": "meter"}}}
    assert search_line(made).startswith("Its runs, shared work counted once: ")
    made["environment"] = {**made["environment"], "runs_at_once": 2}
    assert search_line(made).startswith("Its runs, 2 at a time, shared work counted once: ")


def test_verdict_sentences() -> None:
    pair = {"a": "full", "b": "lora", "delta": 0.008, "low": 0.002, "high": 0.015, "smallest_detectable": 0.012}
    assert sentence(pair | {"verdict": "better"}) == "full is better than lora by 0.8 [0.2, 1.5]"
    worse = pair | {"delta": -0.008, "low": -0.015, "high": -0.002, "verdict": "worse"}
    assert sentence(worse) == "lora is better than full by 0.8 [0.2, 1.5]"
    assert sentence(pair | {"verdict": "cannot tell"}) == (
        "full and lora: cannot tell; the smallest difference these runs could have shown for this pair alone is 1.2"
    )
    for delta, low, high in ((0.015, 0.0, 0.02), (-0.015, -0.02, 0.0)):
        assert sentence(pair | {"delta": delta, "low": low, "high": high, "verdict": "cannot tell"}).endswith(
            "for this pair alone is 1.2; 1.5 is not enough after correction for all pairs"
        )


def test_a_verdict_says_what_failed_runs_counted_as() -> None:
    pair = {"a": "full", "b": "lora", "delta": 0.2, "low": 0.1, "high": 0.3, "smallest_detectable": 0.1}
    assert sentence(pair | {"verdict": "better", "failed": [0, 2]}) == (
        "full is better than lora by 20.0 [10.0, 30.0]; failed runs count as the majority class (2 of lora)"
    )
    assert sentence(pair | {"verdict": "better", "failed": [0, 0]}).endswith("[10.0, 30.0]")


def test_a_second_opinion_is_told_where_it_differs() -> None:
    pair = {"a": "full", "b": "lora", "delta": 0.01, "low": 0.0, "high": 0.02, "smallest_detectable": 0.012}
    order = {"of": "full", "epsilon": 0.1, "epsilon_min": 0.6, "confidence": 0.95}
    better, unsure = pair | {"verdict": "better"}, pair | {"verdict": "cannot tell"}
    assert sentence(better | {"aso": order}).endswith(
        "; its runs alone do not show it (almost stochastic order, ε 0.60)"
    )
    assert sentence(unsure | {"aso": order | {"epsilon_min": 0.1}}).endswith(
        "; on these very examples the runs of full are the better ones (almost stochastic order, ε 0.10)"
    )
    agreeing = (better | {"aso": order | {"epsilon_min": 0.1}}, unsure | {"aso": order}, better | {"aso": None})
    assert not any("stochastic" in sentence(one) for one in agreeing)


def test_verdicts_are_against_the_best_and_the_majority_only() -> None:
    lines = verdicts(board(usual()))
    assert len(lines) == 4
    assert not any(line.startswith("adapter is better than linear_probe") for line in lines)
    assert lines[-1].startswith("every other method is better than majority too; the closest: linear_probe")


def test_points() -> None:
    item = {"n_seeds": 5, "scores": {"accuracy": {"mean": 0.961, "sd": 0.003, "low": 0.946, "high": 0.974}}}
    assert points(item, "accuracy") == "96.1 ± 0.3 [94.6, 97.4]"
    assert points(item | {"n_seeds": 1}, "accuracy") == "96.1 [94.6, 97.4]"
    assert points(item, "f1") == "–"


def test_search_line() -> None:
    spent = {
        "wall_seconds": Cost(90.0, "s", "meter"),
        "runs": Cost(12.0, "runs", "counter"),
        "co2e_grams": Cost(None, "g", "model"),
        "separate_total_seconds": Cost(120.0, "s", "model"),
    }
    assert search_line(board(usual(), search_costs=spent)) == (
        "Its runs, shared work counted once: time 1 min 30 s, 12 runs; its runs one by one, nothing shared: 2 min 0 s"
    )
    assert search_line(board(usual())) == ""
