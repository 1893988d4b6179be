"""One board over several: sums over the same tasks for all, intervals, and what is said where they disagree."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import RowRuns, board, broken, decision, partly, row
from rich.console import Console
from scipy.stats import gmean, ttest_rel

from graftwork.compare.advice import advice
from graftwork.compare.tasks_data import over_tasks
from graftwork.compare.tasks_report import render_tasks
from graftwork.compare.tasks_table import enough_lines, print_tasks, sentence, verdicts

SHARES = {"one": (0.9, 0.8), "two": (0.7, 0.72), "three": (0.85, 0.6), "four": (0.8, 0.65)}


def task(full: float, svm: float, *others: RowRuns, seeds: int = 5) -> dict[str, Any]:
    rows = [row("majority", 0.3, 0.001, seeds), row("full", full, 100, seeds), row("tfidf_svm", svm, 1, seeds), *others]
    return board(rows)


BOARDS = {name: task(*shares) for name, shares in SHARES.items()}
CONTENT = over_tasks(BOARDS, {})
BY_NAME = {row["method"]: row for row in CONTENT["rows"]}


def scores(method: str) -> list[float]:
    return [BY_NAME[method]["scores"][name]["mean"] for name in SHARES]


def printed(content: dict[str, Any]) -> str:
    stream = StringIO()
    print_tasks(content, Console(file=stream, width=100, color_system=None))
    return stream.getvalue()


def test_means_ranks_and_ratios() -> None:
    assert CONTENT["against"] == "full"
    assert [row["method"] for row in CONTENT["rows"]] == ["full", "tfidf_svm", "majority"]
    for method, rank in (("full", 1.25), ("tfidf_svm", 1.75), ("majority", 3.0)):
        found = BY_NAME[method]
        assert found["mean"] == pytest.approx(np.mean(scores(method)))
        assert found["mean_rank"] == pytest.approx(rank)
        assert found["geometric_mean"] == pytest.approx(gmean(np.array(scores(method)) / np.array(scores("full"))))
    assert BY_NAME["full"]["best_on"] == ["one", "three", "four"]
    assert over_tasks(BOARDS, {}, "tfidf_svm")["against"] == "tfidf_svm"


def test_means_that_only_the_order_of_adding_up_tells_apart_are_equal() -> None:
    even = task(0.8, 0.8)
    for entry in even["rows"]:
        entry["counted"] = {"full": 0.7 + 0.1, "tfidf_svm": 0.8}.get(entry["method"], entry["counted"])
    found = over_tasks(dict.fromkeys(("one", "two", "three"), even), {})
    for entry in found["rows"][:2]:
        assert entry["mean_rank"] == 1.5 and entry["best_on"] == ["one", "two", "three"]
    assert {*found["winners"]["mean"]} == {*found["winners"]["geometric_mean"]} == {"full", "tfidf_svm"}
    pair = next(pair for pair in found["differences"] if {pair["a"], pair["b"]} == {"full", "tfidf_svm"})
    assert pair["tasks_above"] == pair["tasks_below"] == 0


def test_a_failed_run_counts_as_the_majority_class() -> None:
    failing = board([row("majority", 0.3, 0.001), partly("full", 0.9, 100, 0, 1, 2), row("tfidf_svm", 0.8, 1)])
    found = over_tasks(dict.fromkeys(SHARES, failing), {})
    full, svm = (next(row for row in found["rows"] if row["method"] == name) for name in ("full", "tfidf_svm"))
    assert full["scores"]["one"]["mean"] > svm["mean"] > full["mean"] == pytest.approx(0.5, abs=0.02)
    assert svm["best_on"] == list(SHARES) and not full["best_on"] and full["failed"] == dict.fromkeys(SHARES, 3)
    pair = next(pair for pair in found["differences"] if {pair["a"], pair["b"]} == {"full", "tfidf_svm"})
    assert pair["a"] == "tfidf_svm" and any("full on one, two, three, four" in note for note in found["notes"])


def test_prices_stand_by_task_and_in_sum() -> None:
    stored = BY_NAME["full"]["costs"]["stored_bytes"]
    assert stored["by_task"] == dict.fromkeys(SHARES, 4000 * 102) and stored["sum"] == 4 * 4000 * 102
    searched = [one | {"search_costs": {"wall_seconds": {"value": 3.0, "unit": "s", "grade": "meter"}}}
                for one in BOARDS.values()]  # fmt: skip
    assert over_tasks(dict(zip(SHARES, searched, strict=True)), {})["search_costs"]["wall_seconds"]["value"] == 12.0


def test_the_difference_over_tasks_is_students() -> None:
    pair = next(pair for pair in CONTENT["differences"] if (pair["a"], pair["b"]) == ("full", "tfidf_svm"))
    theirs = ttest_rel(scores("full"), scores("tfidf_svm"))
    interval = theirs.confidence_interval(0.95)
    assert pair["p"] == pytest.approx(theirs.pvalue)
    assert (pair["low"], pair["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert (pair["tasks_above"], pair["tasks_below"]) == (3, 1)
    assert pair["verdict"] == "cannot tell"
    better = next(pair for pair in CONTENT["differences"] if (pair["a"], pair["b"]) == ("full", "majority"))
    assert better["verdict"] == "better" and better["p_holm"] > better["p"]
    assert better["tasks_better"] == 4 and better["tasks_worse"] == 0


def test_the_interval_on_these_tasks_adds_their_own() -> None:
    pair = next(pair for pair in CONTENT["differences"] if (pair["a"], pair["b"]) == ("full", "tfidf_svm"))
    halves = []
    for one in BOARDS.values():
        own = next(p for p in one["differences"] if {p["a"], p["b"]} == {"full", "tfidf_svm"})
        halves.append((own["high"] - own["low"]) / 2)
    reach = np.sqrt(np.sum(np.square(halves))) / 4
    assert pair["high_here"] - pair["delta"] == pytest.approx(reach) == pytest.approx(pair["delta"] - pair["low_here"])
    assert reach < max(halves)


@pytest.mark.parametrize(("seeds", "known"), [(1, False), (2, False), (4, True)])
def test_too_few_runs_on_a_task_are_said_wherever_its_numbers_are(seeds: int, known: bool) -> None:
    content = over_tasks({**BOARDS, "few": task(0.9, 0.8, seeds=seeds)}, {}) | {"name": "toy"}
    for pair in content["differences"]:
        assert (pair["low_here"] is not None) is (pair["high_here"] is not None) is known
        assert (", on these unknown;" in sentence(pair)) is not known
    said = f"Not enough runs on 1 of 5 tasks: {seeds} of a method, where 5 show a ranking and 10 support a claim."
    assert said in content["notes"]
    text = printed(content)
    assert text.startswith("toy · 5 tasks, points: not enough runs\n") and "\nVerdicts (not enough runs)\n" in text
    assert said in render_tasks(content, Path())
    assert "not enough runs" not in printed(CONTENT | {"name": "toy"}).lower()


def test_a_method_that_lacks_a_task_is_not_summed_up() -> None:
    boards = {**BOARDS, "five": task(0.9, 0.8, row("lora", 0.99, 50)), "six": task(0.9, 0.8)}
    content = over_tasks(boards, {})
    lora = content["rows"][-1]
    assert lora["method"] == "lora" and lora["mean"] is lora["mean_rank"] is lora["geometric_mean"] is None
    assert lora["status"] == {"five": "ok"} and lora["best_on"] == ["five"]
    assert not any("lora" in (pair["a"], pair["b"]) for pair in content["differences"])
    assert any("lora (1 of 6, mean there 9" in note for note in content["notes"])
    assert any("--exhaustive" in note for note in content["notes"])
    assert over_tasks(boards, {}, "lora")["against"] == "full"
    assert any("ratios are to full" in note for note in over_tasks(boards, {}, "lora")["notes"])


def test_tasks_that_fail_are_told_and_left_out() -> None:
    content = over_tasks({**BOARDS, "none": board([broken("full")])}, {"lost": "no such file\n  where: x"})
    assert content["counted"] == list(SHARES)
    assert [(one["name"], one["status"]) for one in content["tasks"]][4:] == [("lost", "failed"), ("none", "failed")]
    assert content["rows"] == CONTENT["rows"]
    assert "Every summary is over 4 of 6 tasks." in content["notes"]
    assert "lost failed: no such file" in content["notes"]


def test_nothing_but_failures() -> None:
    content = over_tasks({}, {"lost": "why"})
    assert content["rows"] == content["differences"] == content["counted"] == []
    assert content["against"] is None and content["winners"] == {"mean": [], "mean_rank": [], "geometric_mean": []}


def test_disagreement_on_the_winner_is_told() -> None:
    boards = {"a": task(0.9, 0.2), "b": task(0.5, 0.52), "c": task(0.5, 0.52), "d": task(0.5, 0.52)}
    content = over_tasks(boards, {})
    assert content["winners"]["mean"] == ["full"] and content["winners"]["mean_rank"] == ["tfidf_svm"]
    assert any(note.startswith("The summaries disagree on who is first: by mean full, by mean rank tfidf_svm")
               for note in content["notes"])  # fmt: skip
    assert not any("disagree" in note for note in over_tasks({"a": task(0.9, 0.2)}, {})["notes"])


def test_ratios_need_scores_above_zero_and_means_one_metric() -> None:
    zero = board([row("full", 0.9, 9), row("majority", -1.0, 1)])
    content = over_tasks({"a": zero, "b": zero | {"headline_metric": "macro_f1"}}, {})
    assert [row["geometric_mean"] for row in content["rows"]] == [pytest.approx(1.0), None]
    assert any("score of 0 or below" in note for note in content["notes"])
    assert any("different metrics (accuracy, macro_f1)" in note for note in content["notes"])


def test_under_three_tasks_there_is_no_verdict() -> None:
    content = over_tasks({name: BOARDS[name] for name in ("one", "two")}, {})
    assert {pair["verdict"] for pair in content["differences"]} == {"cannot tell"}
    assert content["differences"][0]["low"] is None and content["differences"][0]["high_here"] is not None
    assert any(note.startswith("With fewer than 3 tasks") for note in content["notes"])


def test_the_method_to_use_is_what_each_board_chose() -> None:
    told = {name: decision(method, {"full": 0.0, "tfidf_svm": 0.002})
            for name, method in (("one", "full"), ("two", "tfidf_svm"), ("three", "full"))}  # fmt: skip
    boards = {name: one | {"decision": told.get(name)} for name, one in BOARDS.items()}
    content = over_tasks(boards, {})
    assert [task["chosen"] for task in content["tasks"]] == ["full", "tfidf_svm", "full", None]
    assert [task["answer"] for task in content["tasks"]] == [" ".join(advice(one)) for one in boards.values()]
    assert content["tasks"][1]["answer"].startswith("Use tfidf_svm: ")
    assert enough_lines(content) == ["Use full on 2: one, three", "Use tfidf_svm on 1: two"]
    text = printed(content | {"name": "toy"})
    assert "\nEnough\n  Use full on 2: one, three\n" in text
    assert "Use tfidf_svm: accuracy" in render_tasks(content | {"name": "toy"}, Path())


def test_a_board_of_an_older_version_chose_nothing() -> None:
    boards = {name: {key: value for key, value in one.items() if key != "decision"} for name, one in BOARDS.items()}
    content = over_tasks(boards, {})
    assert [task["chosen"] for task in content["tasks"]] == [None] * 4 and enough_lines(content) == []
    assert all(task["answer"].startswith("The highest mean on test is ") for task in content["tasks"])


def test_a_verdict_says_that_its_interval_is_of_the_pair_alone() -> None:
    (line,) = (line for line in verdicts(CONTENT) if line.startswith("full over tfidf_svm"))
    assert ", cannot tell (corrected for all pairs); of this pair alone over such tasks [" in line
