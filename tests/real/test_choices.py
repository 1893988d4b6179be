"""Real data: COPA loads as its source describes it, from lists' and from columns' layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.load import load

pytestmark = pytest.mark.real


def task(folder: Path) -> Task:
    return Task.from_file(folder / "train_choices.jsonl", kind="choice", test=folder / "dev_choices.jsonl")


def test_copa_loads(shared: Path) -> None:
    data = load(task(shared / "data" / "copa"))
    assert (data.report["rows"]["train"] + data.report["rows"]["validation"], data.report["rows"]["test"]) == (400, 100)
    assert data.report["choices"]["test"]["right"] == 100
    assert data.report["choices"]["test"]["share_of_that_place"] == 0.55
    first = data.test.examples[0]
    assert first.inputs["text"] == "The man turned on the faucet. What happened as a RESULT?"
    assert first.inputs["choices"][first.target.index(1)] == "Water flowed from the spout."
    assert not any(data.report["duplicates_across"]["rows"].values())


def test_lists_of_copa_give_the_same_data_set(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "copa"
    for name in ("train_choices.jsonl", "dev_choices.jsonl"):
        rows = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        listed = [
            {"premise": row["premise"], "question": row["question"], "choices": [row["choice1"], row["choice2"]]}
            | {"label": int(row["label"][-1]) - 1}
            for row in rows
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, listed)))
    assert load(task(tmp_path)).digest == load(task(folder)).digest


def test_shared_words_tell_little(shared: Path, tmp_path: Path) -> None:
    """COPA was made so that the words of a text and its choices don't give the answer away."""
    run = gw.train(task(shared / "data" / "copa"), method="bm25", runs=tmp_path)
    assert 0.4 < run.result.scores["accuracy"] < 0.75
