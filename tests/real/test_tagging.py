"""Real data: three corpora of tagged words load as their sources describe them, and counting does as it should."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.load import load

pytestmark = pytest.mark.real

SENTENCES = {  # of train, test; what else is in test
    "conll2000": (8_936, 2_012, {"B-NP": 12_422, "B-VP": 4_658, "I-LST": 2}),
    "ncbi_disease": (5_424, 940, {"B-Disease": 960}),
    "ud_ewt": (12_544, 2_077, {"NOUN": 4_123, "X": 42}),
}


def task(folder: Path) -> Task:
    files = {path.name.split(".")[0]: path for path in folder.iterdir()}
    return Task.from_file(files["train"], kind="tagging", test=files["test"], validation=files.get("dev"))


@pytest.mark.parametrize("name", SENTENCES)
def test_corpora_load(shared: Path, name: str) -> None:
    train, test, counts = SENTENCES[name]
    data = load(task(shared / "data" / name))
    rows = data.report["rows"]
    assert (rows["train"] + (rows["validation"] if name == "conll2000" else 0), rows["test"]) == (train, test)
    assert {tag: data.report["classes"]["test"][tag] for tag in counts} == counts
    assert all(not any(found.values()) for found in data.report["mended"].values())


def test_counting_tags_most_words_right(shared: Path, tmp_path: Path) -> None:
    run = gw.train(task(shared / "data" / "ud_ewt"), method="most_frequent_tag", runs=tmp_path)
    assert 0.82 < run.result.scores["accuracy"] < 0.92
