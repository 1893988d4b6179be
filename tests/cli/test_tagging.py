"""Tagging through the commands: from a CoNLL file to a board, a module, and spans in a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.testing import tiny_dataset

Graft = Callable[..., Any]
QUICK = ("--backbone", "tiny_text", "--epochs", "1")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.conll"
    examples = [example for split in tiny_dataset("tagging", rows=40).splits.values() for example in split.examples]
    rows = [zip((*e.inputs["words"], str(i)), (*e.target, "O"), strict=True) for i, e in enumerate(examples)]
    path.write_text("\n".join("".join(f"{word} {tag}\n" for word, tag in row) for row in rows))
    return path


@pytest.mark.slow
def test_compare_train_and_predict(toy: Path, tmp_path: Path, graft: Graft) -> None:
    runs = ("--runs", tmp_path / "runs")
    compared = graft("compare", toy, "--kind", "tagging", "--seeds", "1", "--out", tmp_path / "b", *QUICK, *runs,
                    "--methods", "majority,perceptron_tagger,linear_probe")  # fmt: skip
    assert compared.code == 0, compared.err
    assert "entity_f1" in compared.out and "perceptron_tagger" in compared.out
    trained = graft("train", toy, "--kind", "tagging", "--method", "perceptron_tagger", "--json", *QUICK, *runs)
    found = json.loads(trained.out)
    assert found["reused"] and list(found["scores"]) == ["entity_f1", "conll_f1", "accuracy"]
    plain = graft("predict", found["module"], "So good it was sad")
    assert plain.out.split() == [
        "good:",
        "good",
        "(3-7,",
        plain.out.split()[3],
        "bad:",
        "sad",
        "(15-18,",
        plain.out.split()[-1],
    ]
    (line,) = graft("predict", found["module"], "the good", "--json").out.splitlines()
    assert json.loads(line)["text"] == "the good" and json.loads(line)["spans"][0]["start"] == 4
    assert graft("predict", found["module"], "the was").out.strip() == "(none)"


def test_tagged_words_on_a_line(toy: Path, tmp_path: Path, graft: Graft) -> None:
    toy.write_text("".join(f"a{i} D\nb N\n\n" for i in range(20)))
    trained = graft(
        "train", toy, "--kind", "tagging", "--method", "most_frequent_tag", "--json", "--runs", tmp_path / "r"
    )
    assert graft("predict", json.loads(trained.out)["module"], "a1 b").out == "a1/D b/N\n"


def test_what_does_not_fit_is_refused(toy: Path, tmp_path: Path, graft: Graft) -> None:
    svm = graft("train", toy, "--kind", "tagging", "--method", "tfidf_svm", "--runs", tmp_path / "r")
    assert svm.code == 2 and "has one per word" in svm.err
    csv = tmp_path / "t.csv"
    csv.write_text("text,label\n" + "".join(f"a {i},{i % 2}\n" for i in range(40)))
    tagger = graft("train", csv, "--method", "perceptron_tagger", "--runs", tmp_path / "r")
    assert tagger.code == 2 and "it tags words" in tagger.err
    toy.write_text("a O\nb I-X\n\n" * 20)
    stray = graft("train", toy, "--kind", "tagging", "--method", "majority", "--stray-tags", "refuse")
    assert stray.code == 2 and "toy.conll:1: the tag 'I-X' continues nothing" in stray.err
    assert "--kind tagging" in graft("train", toy, "--method", "majority").err
