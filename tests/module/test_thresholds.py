"""Thresholds of a run: chosen on validation for every method, in its scores, its module, and passes that are shared."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.method import ReadsStates
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.errors import UnknownName
from graftwork.module.predict_many import predict_many
from graftwork.module.task_module import TaskModule
from graftwork.run.execute import execute
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits

METHODS = ("majority", "tfidf_svm", "lora", "no_transfer:by=lora")


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Rows with a rare label and a frequent one."""
    path = tmp_path / "several.csv"
    with path.open("w", newline="") as stream:
        rows = [(f"it is {'late' if i % 4 == 0 else 'fine'} order {i}", ("late|x", "", "x", "x")[i % 4])
                for i in range(80)]  # fmt: skip
        csv.writer(stream).writerows([("text", "label"), *rows])
    return path


def scores(path: Path, runs: Path, method: str, thresholds: str | None) -> tuple[dict[str, float], Path]:
    task = Task.from_file(path, kind="multilabel", thresholds=thresholds)
    named = parse_method(method)
    session = open_session(
        task, [named], RunSettings("tiny_text", runs=str(runs), precision="fp32", cache_size="0", device="cpu")
    )
    result, known = execute(session, named, Recipe(epochs=1), 0, lambda done, text: None)
    assert result.status == "ok" and not known, result.error
    return dict(result.validation), runs / result.id


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.slow if name.startswith("no_transfer") else ()) for name in METHODS]
)
def test_they_serve_validation_and_stay_with_the_module(several: Path, tmp_path: Path, method: str) -> None:
    half, plain = scores(several, tmp_path / "runs", method, "half")
    chosen, run = scores(several, tmp_path / "runs", method, None)
    assert plain != run, "another question, another run"
    assert chosen["macro_f1"] >= half["macro_f1"] - 0.02
    assert chosen["macro_f1"] > 0.3
    module = TaskModule.load(run)
    before = TaskModule.load(plain)
    shift = np.array(module.fitted.facts["shift"])
    assert shift.shape == (2,)
    assert "shift" not in before.fitted.facts
    assert isinstance(module.fitted, ReadsStates) == isinstance(before.fitted, ReadsStates)
    for split in ("validation", "test"):
        difference = np.asarray(read_logits(run, split)) - np.asarray(read_logits(plain, split))
        assert np.abs(difference - shift).max() < 1e-4
    texts = ["it is late order 3", "it is fine order 5"]
    together = predict_many([module, before], texts)
    assert together == [module.predict(texts), before.predict(texts)]


def test_a_wrong_word(several: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'half'"):
        Task.from_file(several, kind="multilabel", thresholds="halv")
