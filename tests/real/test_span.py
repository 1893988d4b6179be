"""Real data: SQuAD loads as its source describes it, and the rule for abbreviations does as it should."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.methods.abbreviation_rule import asked_for
from graftwork.targets.abbreviations import definitions

pytestmark = pytest.mark.real


def test_squad_loads(shared: Path) -> None:
    data = load(Task.from_file(shared / "data" / "squad1" / "dev.jsonl.gz", kind="span"))
    assert sum(data.report["rows"].values()) == 10_570 and sum(data.report["passages"].values()) == 2_067
    assert not any(data.report["passages_across"].values()) and not any(data.report["unanswerable"].values())
    assert data.report["rows"] == {"train": 7_552, "validation": 1_307, "test": 1_711}
    rounded = next(counts for what, counts in data.report["mended"].items() if "inside a word" in what)
    answers = sum(len(example.target) for split in data.splits.values() for example in split.examples)
    assert sum(rounded.values()) < 0.01 * answers, "nearly every answer begins and ends at the border of a word"
    asked = [e for split in data.splits.values() for e in split.examples if asked_for(e.inputs["question"])]
    assert len(asked) > 10


def test_abbreviations_of_medline(shared: Path) -> None:
    gold, found = set(), set()
    with gzip.open(shared / "data" / "abbr_med1250" / "all.jsonl.gz", "rt", encoding="utf-8") as stream:
        for record in map(json.loads, stream):
            gold |= {(record["id"], pair["short"], pair["long"]) for pair in record["pairs"]}
            texts = (record["title"], record["text"])
            found |= {(record["id"], one.short, one.long) for text in texts for one in definitions(text)}
    right = len(gold & found)
    assert right / len(found) > 0.88 and right / len(gold) > 0.79
