"""Where the rows of a run come from, as a paper must say it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.data.readers import hub_datasets as hub
from graftwork.receipts.checklist import RunGroup, checklist, paragraph
from graftwork.receipts.verify import EQUAL, MovedInputs, verifier
from graftwork.run.execute import execute
from graftwork.run.receipt import read_receipt
from graftwork.run.receipt_fields import missing, problems
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a run on a split of its own."""
    folder = tmp_path_factory.mktemp("checklist")
    rows = [f"{'good' if row % 2 else 'bad'} film {row},{'yes' if row % 2 else 'no'}" for row in range(30)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    method = parse_method("majority")
    task = Task.from_file(folder / "films.csv", split_seed=3)
    session = open_session(task, [method], RunSettings(runs=str(folder / "runs"), precision="fp32"))
    result, _ = execute(session, method, Recipe(), 0, lambda done, text: None)
    return read_receipt(session.store.root / result.id)


def told(receipt: dict[str, Any], question: str) -> str:
    return next(line for line in checklist(RunGroup([receipt])).splitlines() if question in line)


def test_the_split_tells_its_seed_and_its_draw(receipt: dict[str, Any], tmp_path: Path) -> None:
    said = told(receipt, "How were the rows split")
    assert "test and validation drawn from train by a hash of the rows' content and the seed 3;" in said
    part = deepcopy(receipt)
    part["rerun"]["draw"] = {"size": "8/class", "number": 2, "seed": 0}
    part["data"]["split_rule"]["seed"] = 0
    said = told(part, "How were the rows split")
    assert "content; train and validation are draw 2 at 8/class;" in said


def test_only_what_a_set_of_the_hub_lacks_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    hub._sets.cache_clear()
    for split, count in (("train", 30), ("validation", 6)):
        rows = {"text": [f"film {row} of {split}" for row in range(count)], "label": ["no", "yes"] * (count // 2)}
        datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "films" / f"{split}.parquet")
    method, task = parse_method("majority"), Task.from_file(f"hub:{tmp_path / 'films'}")
    session = open_session(task, [method], RunSettings(runs=str(tmp_path / "runs")))
    result, _ = execute(session, method, Recipe(), 0, lambda done, text: None)
    receipt = read_receipt(session.store.root / result.id)
    assert " of test, test drawn from train by a hash" in told(receipt, "How were the rows split")
    assert receipt["data"]["files"]["validation"]["path"] == f"hub:{tmp_path / 'films'}:default:validation"
    with verifier() as executing:
        assert executing.verify(session.store.root / result.id).verdict == EQUAL
    (tmp_path / "films").rename(tmp_path / "moved")
    with verifier(MovedInputs(data=f"hub:{tmp_path / 'moved'}")) as executing:
        assert executing.verify(session.store.root / result.id).verdict == EQUAL
    before = deepcopy(receipt)
    del before["data"]["files"]["validation"]
    assert " of test, test drawn from train by a hash" in told(before, "How were the rows split")
    before["data"]["split_rule"]["seed"] = None
    assert "drawn" not in told(before, "How were the rows split"), "no seed: nothing was"
    hub._sets.cache_clear()


def test_a_file_has_its_hash_and_a_set_of_the_hub_its_commit(receipt: dict[str, Any]) -> None:
    assert "train films.csv (" in told(receipt, "Which data") and "bytes), sha256 " in told(receipt, "Which data")
    hub = deepcopy(receipt)
    hub["data"]["files"] = {"train": {"path": "hub:films", "files": 0, "bytes": 0, "sha256": None, "commit": "ab12"}}
    assert "train hub:films, commit ab12; rows as read" in told(hub, "Which data")


def test_a_version_is_no_hyper_parameter(receipt: dict[str, Any]) -> None:
    assert "version" not in told(receipt, "Every hyper-parameter")


def test_runs_that_are_all_alike_have_no_spread(receipt: dict[str, Any]) -> None:
    said = next(line for line in checklist(RunGroup([receipt] * 3)).splitlines() if "Which result" in line)
    assert "±" not in said and "all runs score alike" in said
    other = deepcopy(receipt)
    other["outcome"]["scores"]["accuracy"] += 0.1
    assert "±" in next(line for line in checklist(RunGroup([receipt, other])).splitlines() if "Which result" in line)


def test_where_the_seeds_decide_some_luck_alone_it_is_said(receipt: dict[str, Any]) -> None:
    runs = [deepcopy(receipt) for _ in range(3)]
    for seed, run in enumerate(runs):
        run["randomness"] |= {"seed": seed, "held": ["init", "augmentation"] if seed else []}
        run["outcome"]["scores"]["accuracy"] += 0.01 * seed
    said = paragraph(RunGroup(runs))
    assert "3 runs with seeds 0, 1, 2 (for order alone, the rest as by seed 0), of which 0 failed" in said
    assert "(mean ± sd over seeds of order alone)" in said
    assert "alone, the rest" not in paragraph(RunGroup([receipt])) and "(mean ± sd over seeds)" not in said


@pytest.fixture(scope="module")
def averaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a run that passes over train by steps of its own, from vectors of a file."""
    folder = tmp_path_factory.mktemp("averaged")
    rows = [f"{'good' if row % 2 else 'bad'} film {row},{'yes' if row % 2 else 'no'}" for row in range(30)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text("good 0.1 1.0\nbad 1.0 0.2\n")
    method = parse_method(f"dan:vectors={folder / 'words.txt'}:epochs=2")
    session = open_session(Task.from_file(folder / "films.csv"), [method], RunSettings(runs=str(folder / "runs")))
    result, _ = execute(session, method, Recipe(), 0, lambda done, text: None)
    return read_receipt(session.store.root / result.id)


def test_epochs_without_steps_are_told(receipt: dict[str, Any], averaged: dict[str, Any]) -> None:
    assert averaged["outcome"]["log"]["steps"] == 0 and not problems(averaged)
    assert "Training took 2 epochs, as the method has them; no other run" in paragraph(RunGroup([averaged]))
    other = deepcopy(averaged)
    other["outcome"]["log"]["epochs"] = 5
    assert "Training took 2 to 5 epochs" in paragraph(RunGroup([averaged, other]))
    assert "No weights were trained" in paragraph(RunGroup([receipt]))
    del other["outcome"]["log"]["epochs"]  # a receipt of before
    assert not missing(other) and "The log of a run tells of no gradient steps; " in paragraph(RunGroup([other]))
    other["outcome"]["log"]["lines"] = 0
    assert "No weights were trained" in paragraph(RunGroup([other]))


def test_a_file_that_a_baseline_reads_is_no_data_of_the_task(receipt: dict[str, Any], averaged: dict[str, Any]) -> None:
    assert "majority learns from the data alone." in told(receipt, "What was adapted")
    assert "learns from the data and from the file that its settings name" in told(averaged, "What was adapted")


def test_the_interval_over_other_examples_is_that_of_each_run(receipt: dict[str, Any]) -> None:
    low, high = receipt["outcome"]["interval"]
    assert f"over other examples, of each run alone: {low:.4g} to {high:.4g}." in told(receipt, "Which result")
    assert "other examples" in paragraph(RunGroup([receipt]))
    before = deepcopy(receipt)
    del before["outcome"]["interval"]
    assert "other examples" not in told(before, "Which result")


def test_what_fitting_chose_is_told_of_every_run(receipt: dict[str, Any]) -> None:
    assert "nothing that was recorded" in told(receipt, "What did fitting choose")
    runs = [deepcopy(receipt) for _ in range(2)]
    for run, epoch in zip(runs, (3, 1), strict=True):
        run["method"]["recipe"] = {"learning_rate": 0.001}
        chosen = {"learning_rate": 0.001, "best_epoch": epoch, "head_start": {"used": True, "strength": 0.3}}
        run["outcome"]["facts"] = chosen | {"validation_by_epoch": [0.1, 0.2]}
    said = next(line for line in checklist(RunGroup(runs)).splitlines() if "What did fitting choose" in line)
    assert said.endswith("** best epoch 3, 1; head start strength 0.3.")
    assert "What fitting chose and counted, by run: best epoch 3, 1; head start strength 0.3." in paragraph(
        RunGroup(runs)
    )
    for run in runs:
        del run["outcome"]["facts"]  # a receipt of before
    assert "nothing that was recorded" in checklist(RunGroup(runs))


def test_a_run_keeps_what_its_fitting_chose(tmp_path: Path) -> None:
    rows = [f"{'good' if row % 2 else 'bad'} film {row},{'yes' if row % 2 else 'no'}" for row in range(60)]
    (tmp_path / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    method = parse_method("tfidf_svm")
    session = open_session(Task.from_file(tmp_path / "films.csv"), [method], RunSettings(runs=str(tmp_path / "runs")))
    result, _ = execute(session, method, Recipe(), 0, lambda done, text: None)
    receipt = read_receipt(session.store.root / result.id)
    assert receipt["outcome"]["facts"] == result.facts and "strength" in result.facts
    assert f"strength {result.facts['strength']:.4g}" in told(receipt, "What did fitting choose")


def test_a_cost_that_no_meter_read_is_left_out(receipt: dict[str, Any]) -> None:
    part = deepcopy(receipt)
    del part["price_tag"]["energy_joules"]
    assert "to train" in paragraph(RunGroup([part])) and "of energy" not in paragraph(RunGroup([part]))
    del part["price_tag"]["train_seconds"]
    assert "to train" in paragraph(RunGroup([part, receipt]))
