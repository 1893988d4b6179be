"""`graft benchmark` end to end: a table over tasks, its means, what it leaves out and what it hands in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.benchmark import run_suite
from graftwork.benchmark.run_suite import benchmark
from graftwork.benchmark.suite_table import WIDTH, remarks, table_lines
from graftwork.cli.main import main
from graftwork.core.run import RunResult
from graftwork.errors import ConfigError, StorageError, UnknownName
from graftwork.io.files import read_json
from graftwork.run.store import read_result

Official = Callable[..., Path]
QUICK: dict[str, Any] = {"methods": ["top_layers:k=1"], "seeds": 2, "epochs": 1, "backbone": "tiny_text", "jobs": 1}


def one(count: int) -> list[dict[str, str]]:
    return [{"text": f"{('it works', 'works it')[i % 2]} {i}", "label": str(1 - i % 2)} for i in range(count)]


def pairs(count: int, labels: tuple[str, ...]) -> list[dict[str, str]]:
    said = ("call", "write", "ask")
    return [
        {"text_a": f"{said[0]} me {i}", "text_b": f"{said[i % 3]} me {i}", "label": labels[i % len(labels)]}
        for i in range(count)
    ]


NLI = ("entailment", "neutral", "contradiction")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {"out": tmp_path / "out", "runs": tmp_path / "runs"}


@pytest.mark.slow
def test_tasks_of_every_shape_in_one_table(official: Official, places: dict[str, Path]) -> None:
    official("CoLA", train=one(30), dev=one(8), test=one(4))
    official("STS-B", train=pairs(30, ("0.5", "3", "4.8")), dev=pairs(9, ("0.5", "3", "4.8")), test=pairs(4, ("",)))
    folder = official("MNLI", train=pairs(36, NLI), dev_matched=pairs(9, NLI), dev_mismatched=pairs(6, NLI),
                      test_matched=pairs(3, NLI), test_mismatched=pairs(4, NLI))  # fmt: skip
    done = benchmark("glue", folder, **QUICK, **places)
    content = json.loads((places["out"] / "benchmark.json").read_text())
    assert content == json.loads(json.dumps(done.content))
    columns = [column for task in content["tasks"].values() for column in task["columns"]]
    assert columns == ["CoLA matthews", "STS-B pearson", "STS-B spearman", "MNLI-m accuracy", "MNLI-mm accuracy"]
    by_method = {row["method"]: row for row in content["rows"]}
    assert set(by_method) == {"best on validation", "top_layers:k=1", "majority"}, "majority always takes part"
    assert all(set(row["scores"]) == set(columns) for row in content["rows"])
    assert by_method["majority"]["scores"]["MNLI-mm accuracy"]["mean"] == pytest.approx(1 / 3)
    assert by_method["majority"]["scores"]["CoLA matthews"]["mean"] == 0
    majority = by_method["majority"]["mean"]
    assert majority["mean"] == pytest.approx((0 + 0 + 1 / 3) / 3), "a task counts once"
    assert majority["seeds"] == 2
    assert content["left_out"]["RTE"] == "no RTE/train.tsv and no RTE/dev.tsv"
    human = next(row for row in content["published"] if row["name"] == "human")
    assert human["mean"]["mean"] == pytest.approx((66.4 + (92.7 + 92.6) / 2 + (92.0 + 92.8) / 2) / 300)
    bert = next(row for row in content["published"] if row["name"] == "BERT-base")
    assert "mean" not in bert, "it lacks a score of STS-B"
    assert max(map(len, table_lines(content))) <= WIDTH
    told = " ".join(remarks(content))
    assert "MISSING from them: SST-2: no SST-2/train.tsv" in told
    assert "split, a tenth of train" in told

    files = {path.name: path.read_text().splitlines() for path in (places["out"] / "submission").iterdir()}
    assert set(files) == {"CoLA.tsv", "STS-B.tsv", "MNLI-m.tsv", "MNLI-mm.tsv"}
    assert {name: len(lines) for name, lines in files.items()} == {
        "CoLA.tsv": 5, "STS-B.tsv": 5, "MNLI-m.tsv": 4, "MNLI-mm.tsv": 5,
    }  # fmt: skip
    assert all(lines[0] == "index\tprediction" for lines in files.values())
    assert {line.split("\t")[1] for line in files["MNLI-mm.tsv"][1:]} <= set(NLI)
    assert content["submission"]["missing"] == ["AX.tsv"]


def test_a_failed_run_counts_as_the_majority_class(
    official: Official, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = official("MNLI", train=pairs(36, NLI), dev_matched=pairs(9, NLI), dev_mismatched=pairs(6, NLI))
    quick = QUICK | {"methods": ["tfidf_svm"]}
    whole = {row["method"]: row for row in benchmark("glue", folder, **quick, **places).content["rows"]}
    board = read_json(places["out"] / "MNLI" / "leaderboard.json")
    lost = next(row["runs"][1] for row in board["rows"] if row["method"] == "tfidf_svm")

    def reads(path: Path) -> RunResult:
        result = read_result(path)
        return replace(result, status="diverged", scores={}, validation={}) if result.id == lost else result

    monkeypatch.setattr(run_suite, "read_result", reads)
    content = benchmark("glue", folder, **quick, **places).content
    told = {row["method"]: row for row in content["rows"]}
    assert whole["tfidf_svm"]["n_failed"] == told["majority"]["n_failed"] == {"MNLI": 0}
    assert told["tfidf_svm"]["n_failed"] == {"MNLI": 1}
    for column, score in told["tfidf_svm"]["scores"].items():
        both = [rows["scores"][column]["mean"] for rows in (whole["tfidf_svm"], whole["majority"])]
        assert (score["mean"], score["seeds"]) == (pytest.approx(sum(both) / 2), 2) and both[0] != both[1]
    assert told["tfidf_svm"]["mean"]["mean"] < whole["tfidf_svm"]["mean"]["mean"]
    assert "count as the majority class: tfidf_svm on MNLI 1 of 2." in " ".join(remarks(content))
    assert "*" in next(line for line in table_lines(content) if line.startswith("tfidf_svm"))


def test_a_limit_is_told_and_hands_nothing_in(official: Official, places: dict[str, Path]) -> None:
    folder = official("CoLA", train=one(60), dev=one(40), test=one(3))
    content = benchmark("glue", folder, limit=20, tasks="CoLA", **QUICK, **places).content
    rows = content["tasks"]["CoLA"]["rows"]
    assert rows["train"] + rows["validation"] == 20
    assert rows["test"] == 20
    assert content["submission"] is None
    assert "At most 20 rows of each labelled file" in " ".join(remarks(content))
    assert not (places["out"] / "submission").exists()
    again = benchmark("glue", folder, limit=20, tasks=["CoLA"], **QUICK | {"methods": "top_layers:k=1"}, **places)
    assert again.content == content, "the same rows, the same runs"


def test_what_cannot_be_asked_is_said_before_anything_runs(
    official: Official, places: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match="no such folder"):
        benchmark("glue", tmp_path / "nowhere", **places)
    with pytest.raises(UnknownName, match="did you mean 'glue'"):
        benchmark("glu", tmp_path, **places)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match=r"no CoLA/train\.tsv and no CoLA/dev\.tsv; no SST-2"):
        benchmark("glue", tmp_path / "empty", **places)
    folder = official("CoLA", train=one(30), dev=one(8))
    with pytest.raises(ConfigError, match=r"the task RTE can't run: no RTE/train\.tsv"):
        benchmark("glue", folder, tasks=["rte"], **places)
    with pytest.raises(UnknownName, match="did you mean 'CoLA'"):
        benchmark("glue", folder, tasks=["cole"], **places)
    with pytest.raises(ConfigError, match="--limit must be at least 1"):
        benchmark("glue", folder, limit=0, **places)
    assert not places["runs"].exists()


def test_the_command_prints_the_table(
    official: Official, places: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = official("CoLA", train=one(30), dev=one(8))
    flags = ["--tasks", "cola", "--methods", "majority", "--seeds", "1"]
    arguments = ["benchmark", "glue", str(folder), *flags]
    assert main([*arguments, *(f"--{name}={path}" for name, path in places.items())]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("GLUE (Wang et al. 2019) · points · backbone minilm · seeds 1\n")
    assert "BERT-large (test)" in shown
    assert "CoLA majority" in shown
