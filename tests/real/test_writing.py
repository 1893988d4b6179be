"""Real translations and summaries, with the baselines that write."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.load import load

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("name", "test", "columns", "rows"),
    [
        ("multi30k_en_de", "test2016.tsv", ("source", "target"), (29_000, 1_014, 1_000)),
        ("debian_en_de", "test.tsv", ("source", "target"), (27_242, 1_086, 2_341)),
        ("debian_summaries", "test.tsv", ("text", "summary"), (6_000, 400, 800)),
    ],
)
def test_the_files_read_as_they_are(
    shared: Path, name: str, test: str, columns: tuple[str, str], rows: tuple[int, int, int]
) -> None:
    folder = shared / "data" / name
    data = load(Task.from_file(folder, kind="generation", test=str(folder / test)), checked=False)
    assert (data.task.text, data.task.label) == columns
    assert tuple(len(split.examples) for split in data.splits.values()) == rows


def test_the_first_sentence_is_a_fair_summary(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "debian_summaries"
    scores = {
        method: gw.train(Task.from_file(folder, kind="generation"), method=method, runs=str(tmp_path)).result.scores
        for method in ("first_sentence", "majority")
    }
    assert 0.35 < scores["first_sentence"]["chrf"] < 0.45 and scores["majority"]["chrf"] < 0.2
