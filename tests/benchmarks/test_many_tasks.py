"""The driver over many tasks: how it draws rows, what it calls `variable`, and the table that it prints."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.io.files import write_json

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "many_tasks"


@pytest.fixture(scope="module")
def driver(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("many_tasks/run")


@pytest.fixture(scope="module")
def table(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("many_tasks/table")


def texts(rows: list[dict[str, str]]) -> set[str]:
    return {row["text"] for row in rows}


def test_rows_are_drawn_by_their_texts_and_stand_in_one_split(driver: ModuleType, tmp_path: Path) -> None:
    lines = ["text\tlabel", *(f'a "text" {i % 90}\t{"yes" if i % 2 else "no"}' for i in range(100))]
    (tmp_path / "all.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    drawn = driver.splits_of(tmp_path, 40)
    assert len(drawn["train"]) == 40 and drawn["validation"] and drawn["test"]
    assert not texts(drawn["train"]) & (texts(drawn["validation"]) | texts(drawn["test"]))
    assert not texts(drawn["validation"]) & texts(drawn["test"])
    assert driver.splits_of(tmp_path, 40) == drawn
    fewer = driver.splits_of(tmp_path, 20)
    assert texts(fewer["train"]) < texts(drawn["train"]) and fewer["test"] == drawn["test"]


def test_published_splits_are_kept(driver: ModuleType, tmp_path: Path) -> None:
    for name in ("train", "dev"):
        rows = [f"{name} {i}\t{'yes' if i % 2 else 'no'}" for i in range(60)] + ["in both\tyes"]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows, f"{name} rare\t{name}"]))
    drawn = driver.splits_of(tmp_path, 4000)
    assert texts(drawn["test"]) == {*(f"dev {i}" for i in range(60)), "in both"}, "dev, but no label that train lacks"
    assert "in both" not in texts(drawn["train"])
    assert all(text.startswith("train") for text in texts(drawn["validation"]))


def board(shares: dict[str, float]) -> dict[str, Any]:
    """A board of these means; what is further apart than 5 points is shown to be so."""
    cost = {"unit": "s", "grade": "meter"}
    names = sorted(shares, key=lambda name: -shares[name])
    rows = [
        {"method": name, "status": "ok", "n_seeds": 3, "runs": [],
         "scores": {"accuracy": {"mean": shares[name], "sd": 0.01, "low": 0.1, "high": 0.9}},
         "costs": {"train_seconds": cost | {"value": 1.0}, "stored_bytes": {"unit": "bytes", "value": 10},
                   "trained_parameters": {"unit": "parameters", "value": 7}}}
        for name in names
    ]  # fmt: skip
    pairs = []
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            delta = shares[a] - shares[b]
            verdict = "better" if delta > 0.05 else "cannot tell"
            pairs.append({"a": a, "b": b, "delta": delta, "low": delta - 0.02, "high": delta + 0.02, "p": 0.01,
                          "verdict": verdict, "smallest_detectable": 0.03})  # fmt: skip
    return {"headline_metric": "accuracy", "rows": rows, "differences": pairs, "backbone": {"id": "minilm"},
            "task": {"kind": "classification", "rows": {"train": 40, "test": 20}}, "search_costs": {}}  # fmt: skip


SHARES = {"full": 0.9, "adapter": 0.88, "top_layers:k=1": 0.8, "top_layers:k=3": 0.85, "tfidf_svm": 0.7}


def test_variable_is_the_depth_that_is_best_on_validation(driver: ModuleType) -> None:
    whole = board(SHARES)
    before = copy.deepcopy(whole)
    found = driver.with_variable(whole, {"top_layers:k=1": 0.9, "top_layers:k=3": 0.8})
    assert {row["method"]: row["scores"]["accuracy"]["mean"] for row in found["rows"]} == {
        "full": 0.9, "adapter": 0.88, "variable": 0.8, "tfidf_svm": 0.7,
    }  # fmt: skip
    assert len(found["differences"]) == 6 and whole == before
    assert {pair["delta"] for pair in found["differences"] if "variable" in (pair["a"], pair["b"])} == {
        pair["delta"] for pair in whole["differences"]
        if "top_layers:k=1" in (pair["a"], pair["b"]) and "top_layers:k=3" not in (pair["a"], pair["b"])
    }  # fmt: skip


def test_the_linear_model_is_read_beside_the_best_on_the_backbone(driver: ModuleType) -> None:
    behind = driver.linear(board(SHARES))
    assert (behind["best"], behind["verdict"]) == ("full", "better") and behind["delta"] == pytest.approx(0.2)
    assert behind["by"] == ["adapter", "full"]
    ahead = driver.linear(board({"full": 0.6, "adapter": 0.5, "tfidf_svm": 0.7}))
    assert (ahead["best"], ahead["verdict"], ahead["by"]) == ("full", "worse", [])
    assert (ahead["delta"], ahead["low"], ahead["high"]) == (
        pytest.approx(-0.1),
        pytest.approx(-0.12),
        pytest.approx(-0.08),
    )
    assert driver.linear(board({"full": 0.6})) == {}
    few = board(SHARES)
    few["differences"] = [pair | {"p": None, "verdict": "cannot tell"} for pair in few["differences"]]
    assert driver.linear(few)["verdict"] == "unknown", "too few runs show nothing, not that it is near"


def test_the_methods_are_called_as_their_rows_are(driver: ModuleType) -> None:
    assert [parse_method(words).label for words in driver.METHODS] == list(driver.METHODS)
    assert set(driver.SECONDS) == set(driver.METHODS)


def test_boards_measured_one_after_another_make_one_table(
    driver: ModuleType, table: ModuleType, tmp_path: Path
) -> None:
    assert table.tables(tmp_path) == "Not measured yet."
    depths = {"top_layers:k=1": 0.7, "top_layers:k=3": 0.8}
    near = board(SHARES | {"tfidf_svm": 0.89})
    for name, one in (("trec6", board(SHARES)), ("rte", near), ("sms_spam", near)):
        write_json(tmp_path / name / "leaderboard.json", one)
        write_json(tmp_path / name / "variable.json", {"rows_of_train": 40, "seeds": 3, "depths": depths})
    (tmp_path / "mrpc").mkdir()  # begun, not finished
    content = driver.summary(tmp_path)
    assert content["counted"] == ["sms_spam", "trec6", "rte"]
    write_json(tmp_path / "summary.json", content | {"rows_of_train": 40, "seeds": 3})
    printed = table.tables(tmp_path)
    for told in (
        "3 tasks, at most 40 rows of train each, 3 seeds; accuracy",
        "| `variable` | 85.0 |",
        "| trec6 | 90.0 ± 1.0 |",
        "| 3 | 20.0 [18.0, 22.0] |",
        "or better, on 2 of 3 tasks: sms_spam, rte",
        "- full over adapter: 2.0, cannot tell",  # three tasks that differ alike are heads three times
    ):
        assert told in printed


def test_the_readme_shows_the_committed_numbers(table: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert readme.partition("## Results\n")[2].strip() == table.tables()
