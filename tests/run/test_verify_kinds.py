"""Every kind x every method that fits it: the runs of a comparison, executed again without kept passes, are equal."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.receipts.verify import EQUAL, runs_of_board, verifier
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_media import write_folder
from graftwork.testing.tiny_networks import write_network

pytestmark = pytest.mark.slow
ROWS = 40


def examples(kind: str, pair: bool) -> list[Example]:
    data = tiny_dataset(kind, pair=pair, rows=ROWS)
    return [example for split in data.splits.values() for example in split.examples]


def table(kind: str, folder: Path, pair: bool = False) -> Path:
    """Texts, each with a number of its own."""
    found = examples(kind, pair)
    path = folder / "toy.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*found[0].inputs, "label"])
        for number, example in enumerate(found):
            target = "|".join(example.target) if isinstance(example.target, tuple) else str(example.target)
            writer.writerow([*(f"{text} {number}" for text in example.inputs.values()), target])
    return path


def lines(kind: str, folder: Path) -> Path:
    """Words with tags, texts with choices, or passages with questions."""
    told: list[dict[str, Any]] = []
    for number, example in enumerate(examples(kind, False)):
        if kind == "tagging":
            told.append({"tokens": [*example.inputs["words"], str(number)], "tags": [*example.target, "O"]})
        elif kind == "span":
            answers = [{"text": gold.text, "answer_start": gold.start} for gold in example.target]
            asked = {"id": number, "context": f"{example.source} {number}.", "question": example.inputs["question"]}
            told.append(asked | {"answers": answers})
        else:
            asked = {"text": f"{example.inputs['text']} {number}", "choices": example.inputs["choices"]}
            told.append(asked | {"labels": example.target})
    path = folder / "toy.jsonl"
    path.write_text("\n".join(map(json.dumps, told)), encoding="utf-8")
    return path


def verify_all(task: Task, folder: Path, backbone: str, precision: str = "fp32") -> None:
    places = {"runs": folder / "runs", "out": folder / "board", "cache": folder / "cache"}
    gw.compare(task, backbone=backbone, seeds=1, epochs=1, precision=precision, exhaustive=True, jobs=1, **places)  # type: ignore[arg-type]
    runs = runs_of_board(folder / "board")
    assert len(runs) >= 6
    with verifier() as executing:
        found = [executing.verify(folder / "runs" / run) for run in runs]
    assert {one.verdict for one in found} == {EQUAL}, [one for one in found if one.differences]
    assert not [one for one in found if one.differences]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
def test_texts(kind: str, precision: str, tmp_path: Path) -> None:
    verify_all(Task.from_file(table(kind, tmp_path), kind=kind), tmp_path, "tiny_text", precision)


def test_pairs(tmp_path: Path) -> None:
    verify_all(Task.from_file(table("classification", tmp_path, pair=True)), tmp_path, "tiny_text")


@pytest.mark.parametrize("kind", ["tagging", "choice", "ranking", "span"])
def test_words_choices_and_questions(kind: str, tmp_path: Path) -> None:
    verify_all(Task.from_file(lines(kind, tmp_path), kind=kind), tmp_path, "tiny_text")


@pytest.mark.parametrize(("role", "network"), [("image", "vit"), ("sound", "wav2vec2")])
def test_images_and_sounds(role: str, network: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "things", role, 12)
    write_network(tmp_path / network, network)
    verify_all(Task.from_file(tmp_path / "things"), tmp_path, f"hf:{tmp_path / network}")
