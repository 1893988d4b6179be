"""A stream on real weights, in the precision that this processor prefers: learnt, compared bit by bit, forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw

pytestmark = pytest.mark.real


def head_of(source: Path, to: Path, rows: int) -> Path:
    """The header and the first rows."""
    lines = source.read_text(encoding="utf-8").split("\n")[: rows + 1]
    to.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return to


def test_tasks_of_several_methods_stay_as_they_are(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    questions = head_of(data / "trec6" / "train.tsv", tmp_path / "questions.tsv", 150)
    spam = head_of(data / "sms_spam" / "all.tsv", tmp_path / "spam.tsv", 150)
    similar = gw.Task.from_file(head_of(data / "stsb" / "train.tsv", tmp_path / "similar.tsv", 150), kind="regression")
    place = {"runs": tmp_path / "runs", "cache": tmp_path / "cache", "epochs": 1}
    bank = tmp_path / "b.bank"
    compared = []
    for number, (method, task) in enumerate((("adapter", questions), ("lora", spam), ("top_layers", similar))):
        done = gw.stream([task], bank, method=method, out=tmp_path / str(number), **place)
        compared += [row["earlier"]["compared"] for row in done.content["tasks"]]
        assert not done.failed
    assert compared == [0, 1, 2]
    forgets = gw.stream([questions, spam], bank, method="full-sequential", **place)
    matrix = forgets.content["matrix"]
    assert matrix[0][0] > 0.4 and matrix[1][1] > 0.5  # 6 and 2 classes, some hundred rows
    assert gw.Bank.open(bank).check() == []
