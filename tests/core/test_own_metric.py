"""A function of one's own as a metric: scored, resampled, recorded, and missed where it is not registered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, mean_absolute_error

import graftwork as gw
from graftwork.core.metric import score
from graftwork.core.own_metric import identity
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.io.files import read_json
from graftwork.receipts.verify import verifier
from graftwork.registry import metrics
from graftwork.run.score_interval import weigh

LABELS = Task("t", Path(), labels=("bad", "good", "so so"))
Y, Y_HAT = np.array([0, 1, 2, 1, 0, 2, 2, 1]), np.array([0, 1, 1, 1, 2, 2, 2, 0])
NAMES = np.array(LABELS.labels)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No metric of a test stays registered."""
    yield
    for name in metrics.here_only():
        del metrics._parts[name]


def found(task: Task, y: Any, y_hat: Any) -> float:
    return score(metrics.get("own"), y, y_hat, task)


def test_it_is_called_with_the_labels_of_the_file() -> None:
    gw.register_metric("own", cohen_kappa_score)
    assert found(LABELS, Y, Y_HAT) == cohen_kappa_score(NAMES[Y], NAMES[Y_HAT])
    gw.register_metric("own", partial(f1_score, average="binary", pos_label="good"))
    two = Task("t", Path(), labels=("bad", "good"))
    assert found(two, Y % 2, Y_HAT % 2) == f1_score(Y % 2, Y_HAT % 2)


def test_numbers_are_in_the_units_of_the_file_and_errors_count_negatively() -> None:
    gw.register_metric("own", mean_absolute_error, higher_is_better=False)
    task = Task("t", Path(), kind="regression", settings={"scale": (10.0, 2.0)})
    seen: list[Any] = []
    assert found(task, np.array([0.0, 1.0]), np.array([1.0, 1.0])) == -1.0
    gw.register_metric("own", lambda y, y_hat: seen.append(y) or 0.5)
    found(task, np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    assert seen[0].tolist() == [10.0, 12.0]


def test_labels_of_a_multilabel_task_are_zeros_and_ones() -> None:
    task = Task("t", Path(), kind="multilabel", labels=("a", "b"))
    y, y_hat = np.array([[1, 0], [1, 1]], np.float32), np.array([[1, 0], [0, 1]], np.float32)
    gw.register_metric("own", partial(f1_score, average="micro"))
    assert found(task, y, y_hat) == f1_score(y, y_hat, average="micro")


def test_its_interval_is_that_of_the_same_bootstrap() -> None:
    """Accuracy as a function has the draws of the metric accuracy."""
    gw.register_metric("own", lambda y, y_hat: float(np.mean(y == y_hat)))
    own, known = metrics.get("own"), metrics.get("accuracy")
    one = weigh(own.statistics(Y, Y_HAT, LABELS), own)
    other = weigh(known.statistics(Y, Y_HAT, LABELS), known)
    assert np.allclose(one.draws, other.draws) and one.score == other.score


def test_a_board_by_it_equals_one_by_the_metric_that_it_repeats(tmp_path: Path) -> None:
    gw.register_metric("own", lambda y, y_hat: float(np.mean(y == y_hat)))
    task = Task.from_file("builtin:tickets", metrics=["own", "accuracy"])
    board = gw.compare(task, methods=["majority", "tfidf_svm"], seeds=2, runs=tmp_path / "runs", out=tmp_path / "out")
    for row in board.rows:
        own, known = row["scores"]["own"], row["scores"]["accuracy"]
        assert own["mean"] == pytest.approx(known["mean"]) and own["low"] == pytest.approx(known["low"], abs=0.02)
    assert board.content["statistics"]["draws"] == 1000
    assert board.chosen is not None and board.chosen.method == "tfidf_svm"


def test_what_fails_is_said_before_any_run(tmp_path: Path) -> None:
    def fails(y: Any, y_hat: Any) -> float:
        raise ZeroDivisionError("no urgent ticket")

    for function, told in ((fails, "no urgent ticket"), (lambda y, y_hat: 12.0, "at most 1")):
        gw.register_metric("own", function)
        task = Task.from_file("builtin:tickets", metrics=["own"])
        with pytest.raises(ConfigError) as error:
            gw.train(task, method="majority", runs=tmp_path / "runs")
        assert told in str(error.value)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(ConfigError, match="exists already"):
        gw.register_metric("accuracy", fails)
    with pytest.raises(ConfigError, match="must be a function"):
        gw.register_metric("own", 3)  # type: ignore[arg-type]


def test_an_undefined_score_is_zero_and_words_have_no_single_answer(tmp_path: Path) -> None:
    gw.register_metric("own", lambda y, y_hat: float("nan"))
    assert found(LABELS, Y, Y_HAT) == 0.0
    task = Task.from_file("builtin:tickets", metrics=["own"], kind="generation")
    with pytest.raises(ConfigError, match="one answer per example"):
        gw.train(task, method="copy_source", runs=tmp_path / "runs")


@pytest.mark.slow
def test_another_function_is_another_run_and_a_receipt_misses_it(tmp_path: Path) -> None:
    task = Task.from_file("builtin:tickets", metrics=["own"])
    gw.register_metric("own", cohen_kappa_score)
    run = gw.train(task, method="majority", runs=tmp_path / "runs")
    receipt = read_json(run.folder / "receipt.json")
    assert receipt["method"]["question"]["own_metrics"] == {"own": identity(cohen_kappa_score)}
    with verifier() as checks:
        assert checks.verify(run.folder).holds
    gw.register_metric("own", lambda y, y_hat: float(np.mean(y == y_hat)))
    other = gw.train(task, method="majority", runs=tmp_path / "runs")
    assert other.result.id != run.result.id and not other.reused
    with verifier() as checks:
        assert [one.about for one in checks.verify(run.folder).differences] == ["question.own_metrics.own"]
    del metrics._parts["own"]
    with verifier() as checks, pytest.raises(ConfigError, match="not registered here") as error:
        checks.verify(run.folder)
    assert "cohen_kappa_score" in str(error.value)
    assert run.module.predict(["my card is lost"]), "a module answers without it"


def test_side_by_side_it_is_not_known(tmp_path: Path) -> None:
    gw.register_metric("own", cohen_kappa_score)
    task = Task.from_file("builtin:tickets", metrics=["own"])
    with pytest.raises(ConfigError, match="do not know the parts"):
        gw.compare(task, methods=["majority"], jobs=2, runs=tmp_path / "runs", out=tmp_path / "out")
