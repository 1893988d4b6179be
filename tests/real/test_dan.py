"""The deep averaging network on TREC-6, with vectors of its own and with GloVe's."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw

pytestmark = pytest.mark.real


def test_glove_brings_more_than_drawn_vectors_where_rows_are_few(shared: Path, tmp_path: Path) -> None:
    folder, glove = shared / "data" / "trec6", shared / "fixtures" / "embeddings" / "glove.6B.50d.10k.txt.gz"
    few = tmp_path / "few.tsv"
    few.write_text("".join((folder / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)[:501]))
    board = gw.compare(
        gw.Task.from_file(few, test=folder / "test.tsv"),
        methods=["majority", "dan", f"dan:vectors={glove}"],
        seeds=3,
        exhaustive=True,
        runs=tmp_path / "runs",
        out=tmp_path / "board",
        jobs=1,
    )
    means = {row["method"]: row["scores"]["accuracy"]["mean"] for row in board.rows}
    drawn, given = means["dan"], means[f"dan:vectors={glove}"]
    assert means["majority"] < drawn < given - 0.02 and given > 0.65
    row = next(row for row in board.rows if row["method"] == f"dan:vectors={glove}")
    module = gw.TaskModule.load(tmp_path / "runs" / row["runs"][0])
    assert module.description["method"]["vectors"].startswith("sha256-"), "no path stands in a module"
    assert str(glove) not in (module.folder / "module.json").read_text(encoding="utf-8")
    assert module.predict(["How many people live in Paris ?"])[0]["label"]


def test_trec6_in_seconds(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "trec6"
    task = gw.Task.from_file(folder / "train.tsv", test=folder / "test.tsv")
    run = gw.train(task, method="dan", runs=tmp_path / "runs")
    assert run.result.scores["accuracy"] > 0.82  # its card says 84 to 86
    assert run.result.costs["train_cpu_seconds"].value is not None
    assert run.result.costs["train_cpu_seconds"].value < 60
