"""Questions about passages through the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]
QUICK = ("--backbone", "tiny_text", "--epochs", "1")
CONTEXT = "The Lunar Module (LM) number {} met the ship."


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "toy.json"
    paragraphs = [
        {
            "context": CONTEXT.format(number),
            "qas": [
                {
                    "id": f"q{number}",
                    "question": "What does LM stand for?",
                    "answers": [{"text": "Lunar Module", "answer_start": 4}],
                }
            ],
        }
        for number in range(40)
    ]
    articles = [{"title": f"a{number // 2}", "paragraphs": [one]} for number, one in enumerate(paragraphs)]
    path.write_text(json.dumps({"version": "1.1", "data": articles}))
    return path


def test_train_and_predict(questions: Path, tmp_path: Path, graft: Graft) -> None:
    runs = ("--runs", tmp_path / "runs")
    trained = graft("train", questions, "--kind", "span", "--method", "abbreviation_rule", "--json", *QUICK, *runs)
    found = json.loads(trained.out)
    assert found["scores"] == {"span_f1": 1.0, "exact_match": 1.0}, trained.err
    asked = "What does LM stand for?", CONTEXT.format("x")
    plain = graft("predict", found["module"], *asked)
    assert plain.out.startswith("Lunar Module (4-16, 0.99")
    (line,) = graft("predict", found["module"], *asked, "--json").out.splitlines()
    answer = json.loads(line)
    assert answer["context"] == asked[1] and answer["answer"] == "Lunar Module" and len(answer["n_best"]) == 5
    assert graft("predict", found["module"], "What?").code == 2


def test_compare(questions: Path, tmp_path: Path, graft: Graft) -> None:
    compared = graft("compare", questions, "--kind", "span", "--seeds", "1", "--out", tmp_path / "b", *QUICK,
                     "--runs", tmp_path / "runs", "--methods", "majority,ngram_window,adapter")  # fmt: skip
    assert compared.code == 0, compared.err
    assert "span_f1" in compared.out and "ngram_window" in compared.out


def test_realign(questions: Path, tmp_path: Path, graft: Graft) -> None:
    questions.write_text(questions.read_text().replace('"answer_start": 4', '"answer_start": 3'))
    train = ("train", questions, "--kind", "span", "--method", "majority", "--runs", tmp_path / "runs")
    refused = graft(*train)
    assert refused.code == 2 and "40 answers" in refused.err and "--realign" in refused.err
    taken = graft(*train, "--realign")
    assert taken.code == 0 and "the occurrence nearest to the offset was taken" in taken.out, taken.err
    assert taken.out.endswith('/module "a question" "its passage"\n')
    [card] = (tmp_path / "runs").glob("*/module/README.md")
    assert '`graft predict FOLDER "a question" "its passage"`' in card.read_text()
    task = tmp_path / "task.toml"
    task.write_text('data = "toy.json"\nkind = "span"\nrealign = true\n')
    assert graft("train", task, "--method", "majority", "--runs", tmp_path / "runs").code == 0
