"""Runs of a learning curve: each receipt tells the rows of its own draw, and is verified on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graftwork.compare.curve import curve
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.data.splits.draws import draw, drawn_again, parse_sizes
from graftwork.io.files import read_json
from graftwork.receipts.verify import EQUAL, verifier
from graftwork.run.receipt import inputs_of, rerun_of
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings


def films(folder: Path) -> Task:
    rows = [f"{'good' if i % 2 else 'bad'} film {i} x{i % 7},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return Task.from_file(folder / "films.csv")


def test_sessions_over_the_draws_of_one_data_set_tell_each_its_own(tmp_path: Path) -> None:
    method = parse_method("majority")
    session = open_session(films(tmp_path), [method], RunSettings(runs=str(tmp_path / "runs"), precision="fp32"))
    assert "draw" not in (rerun_of(session) or {})
    for size in parse_sizes("3/class,50%", session.dataset.task):
        for number in (0, 1):
            drawn = draw(session.dataset, size, number, seed=5).dataset
            here = replace(session, dataset=drawn)
            assert inputs_of(here, here.spec(method, Recipe(), number))["data"]["digest"] == drawn.digest
            rerun = rerun_of(here)
            assert rerun is not None and rerun["draw"] == {"size": size.word, "number": number, "seed": 5}
            assert drawn_again(session.dataset, rerun["draw"]).digest == drawn.digest
    assert drawn_again(session.dataset, None) is session.dataset


def test_later_draws_tell_the_file_that_was_read_whatever_became_of_it(tmp_path: Path) -> None:
    method, task = parse_method("majority"), films(tmp_path)
    session = open_session(task, [method], RunSettings(runs=str(tmp_path / "runs"), precision="fp32"))
    told = []
    for number, size in enumerate(parse_sizes("3/class,50%,100%", session.dataset.task)):
        here = replace(session, dataset=draw(session.dataset, size, number, seed=5).dataset)
        told.append(inputs_of(here, here.spec(method, Recipe(), number))["data"]["files"])
        if number:
            task.data.unlink(missing_ok=True)
        else:
            task.data.write_text("text,label\nanother film,yes\n", encoding="utf-8")
    assert told[1] == told[0] and told[2] == told[0]


@pytest.mark.slow
def test_a_run_on_fresh_weights_tells_the_files_of_a_folder_of_splits(tmp_path: Path) -> None:
    for split, rows in (("train", 40), ("valid", 20), ("test", 20)):
        told = [f"{split} {'good' if i % 2 else 'bad'} {i},{'yes' if i % 2 else 'no'}" for i in range(rows)]
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"{split}.csv").write_text("\n".join(["text,label", *told]) + "\n", encoding="utf-8")
    made = curve(
        Task.from_file(tmp_path / "data"), sizes="3/class", methods="majority,random:linear_probe", draws=1,
        backbone="tiny_text", precision="fp32", runs=tmp_path / "runs", out=tmp_path / "curve", cache_size="0",
    )  # fmt: skip
    receipts = [read_json(tmp_path / "runs" / point["runs"][0] / "receipt.json") for point in made.content["points"]]
    assert receipts[0]["data"]["files"] == receipts[1]["data"]["files"]
    assert receipts[0]["rerun"]["task"] == receipts[1]["rerun"]["task"]
    with verifier() as verifying:
        assert verifying.verify(tmp_path / "runs" / receipts[1]["identity"]["run"]).verdict == EQUAL


@pytest.mark.slow
def test_a_run_of_a_curve_is_verified_on_its_draw_and_its_network(tmp_path: Path) -> None:
    made = curve(
        films(tmp_path),
        sizes="3/class",
        methods="tfidf_svm,random:linear_probe",
        draws=2,
        backbone="tiny_text",
        precision="fp32",
        runs=tmp_path / "runs",
        out=tmp_path / "curve",
        cache_size="0",
    )
    points = {point["method"]: point["runs"] for point in made.content["points"]}
    for run in (run for listed in points.values() for run in listed):
        spec, receipt = (read_json(tmp_path / "runs" / run / name) for name in ("spec.json", "receipt.json"))
        assert receipt["data"]["digest"] == spec["data"]
        assert receipt["rerun"]["draw"]["number"] == spec["seed"]
    with verifier() as verifying:
        for run in (points["tfidf_svm"][1], points["random:linear_probe"][1]):
            found = verifying.verify(tmp_path / "runs" / run)
            assert (found.verdict, found.differences) == (EQUAL, ())
