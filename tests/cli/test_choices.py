"""Choices through the commands: from a file of columns to a board, a module, and an answer on a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    rows = [f"the word {i} is {'ab'[i % 2]},so a {i},so b {i},{i % 2}" for i in range(40)]
    path = tmp_path / "toy.csv"
    path.write_text("\n".join(["premise,choice1,choice2,label", *rows]))
    return path


def test_compare_train_and_predict(toy: Path, tmp_path: Path, graft: Graft) -> None:
    flags = ("--kind", "choice", "--count-from", "0", "--runs", tmp_path / "runs")
    compared = graft("compare", toy, *flags, "--seeds", "1", "--methods", "majority,bm25", "--out", tmp_path / "b")
    assert compared.code == 0, compared.err
    assert "accuracy" in compared.out and "bm25" in compared.out
    found = json.loads(graft("train", toy, *flags, "--method", "bm25", "--json").out)
    assert found["reused"] and found["scores"]["accuracy"] == 1.0
    assert graft("predict", found["module"], "is b", "so a", "so b").out.startswith("so b   (2 of 2, 0.")
    (line,) = graft("predict", found["module"], "is b", "so a", "so b", "no", "--json").out.splitlines()
    assert json.loads(line)["choice"] == "so b" and len(json.loads(line)["probabilities"]) == 3
    assert "fewer than two choices" in graft("predict", found["module"], "is b", "so a").err


def test_rankings_are_lists(toy: Path, tmp_path: Path, graft: Graft) -> None:
    flags = ("--kind", "ranking", "--count-from", "0", "--text", "premise", "--choices", "choice1,choice2")
    trained = graft("train", toy, *flags, "--method", "bm25:b=0.5", "--json", "--runs", tmp_path / "r")
    module = json.loads(trained.out)["module"]
    first, second = graft("predict", module, "is b", "so a", "so b").out.splitlines()
    assert first.endswith("  so b") and second.endswith("  so a") and float(first.split()[0]) > float(second.split()[0])


def test_what_does_not_fit_is_refused(toy: Path, tmp_path: Path, graft: Graft) -> None:
    unclear = graft("train", toy, "--kind", "choice", "--method", "majority")
    assert unclear.code == 2 and "toy.csv:2: the label can be read in two ways" in unclear.err
    unknown = graft("train", toy, "--kind", "choice", "--method", "majority", "--count-from", "2")
    assert "unknown value of count_from" in unknown.err
    texts = graft("train", toy, "--method", "bm25", "--text", "premise", "--runs", tmp_path / "r")
    assert texts.code == 2 and "this task has none" in texts.err
