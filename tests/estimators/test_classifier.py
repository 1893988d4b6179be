"""The classifier: the predictions of `train`, and what scikit-learn makes of an estimator."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import graftwork as gw
from graftwork.errors import ConfigError, InputError, UnknownName

Rows = tuple[list[str], list[str]]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, in which nothing is left, nor where the test runs."""
    folder, here = tmp_path / "temporary", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.glob("graftwork-*")) == [] and list(here.glob("[!k]*")) == []


def adapter(**changed: Any) -> gw.Classifier:
    """An adapter of a tiny backbone; where the method is another one, which may have no epochs, with its own length."""
    length = {} if "method" in changed else {"epochs": 2}
    return gw.Classifier(**{"method": "adapter", "backbone": "tiny_text", **length, **changed})


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])
    return path


def texts_in(runs: Path) -> dict[str, list[str]]:
    """Split -> its texts, by the files that the receipt of the only run names."""
    [receipt] = runs.glob("*/receipt.json")
    files = json.loads(receipt.read_text())["data"]["files"]
    return {
        split: [json.loads(line)["text"] for line in Path(file["path"]).read_text().splitlines()]
        for split, file in files.items()
    }


@pytest.mark.parametrize(
    "method",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in ("adapter", "lora:rank=2")), "linear_probe", "tfidf_svm"],
)
def test_it_predicts_as_train_does_on_the_same_rows(method: str, rows: Rows, tmp_path: Path) -> None:
    estimator = adapter(method=method, random_state=3, runs=tmp_path / "kept").fit(*rows)
    held = texts_in(tmp_path / "kept")["validation"]
    assert 4 <= len(held) <= 8  # a tenth of 60
    train = write(tmp_path / "train.csv", [row for row in zip(*rows, strict=True) if row[0] not in held])
    validation = write(tmp_path / "dev.csv", [row for row in zip(*rows, strict=True) if row[0] in held])
    other = write(tmp_path / "test.csv", [("a good film", rows[1][0]), ("a bad film", rows[1][0])])
    task = gw.Task.from_file(train, validation=validation, test=other)
    run = gw.train(task, method=method, seed=3, backbone="tiny_text", runs=tmp_path / "runs")
    answers = run.module.predict(rows[0])
    assert estimator.predict(rows[0]).tolist() == [answer["label"] for answer in answers]
    told = [[answer["probabilities"][label] for label in estimator.classes_] for answer in answers]
    assert estimator.predict_proba(rows[0]).tolist() == told
    assert estimator.validation_scores_ == run.result.validation


@pytest.mark.parametrize(
    "labels", [np.array([3, 10]), np.array([True, False]), np.array(["yes", "no"]), np.array([0.0, 1.0])]
)
def test_labels_keep_their_type(labels: np.ndarray[Any, Any], rows: Rows) -> None:
    y = labels[[int(label == rows[1][0]) for label in rows[1]]]
    estimator = gw.Classifier("tfidf_svm").fit(rows[0], y)
    assert estimator.classes_.tolist() == sorted(labels.tolist()) and estimator.classes_.dtype == labels.dtype
    assert estimator.predict(rows[0]).dtype == labels.dtype
    assert estimator.score(rows[0], y) > 0.9
    chances = estimator.predict_proba(rows[0])
    assert np.allclose(chances.sum(axis=1), 1)
    assert (estimator.classes_[chances.argmax(axis=1)] == estimator.predict(rows[0])).all()


@pytest.mark.parametrize("name", ["pandas", pytest.param("polars", marks=pytest.mark.slow)])
def test_frames_of_one_or_two_columns(name: str, rows: Rows) -> None:
    library = pytest.importorskip(name)
    texts, labels = rows
    listed = gw.Classifier("tfidf_svm").fit(texts, labels)
    assert (listed.n_features_in_, hasattr(listed, "feature_names_in_")) == (1, False)
    frame = library.DataFrame({"subject": texts, "body": texts[::-1]})
    y = library.Series(labels)
    one = gw.Classifier("tfidf_svm").fit(frame[["subject"]], y)
    assert one.feature_names_in_.tolist() == ["subject"]
    assert (one.predict_proba(frame[["subject"]]) == listed.predict_proba(texts)).all()
    column = gw.Classifier("tfidf_svm").fit(frame["subject"], y)
    assert (column.predict_proba(frame["subject"]) == one.predict_proba(frame[["subject"]])).all()
    two = gw.Classifier("tfidf_svm").fit(frame, y)
    assert (two.n_features_in_, two.module_.roles) == (2, ("text_a", "text_b"))
    pairs = gw.Classifier("tfidf_svm").fit(list(zip(texts, texts[::-1], strict=True)), labels)
    array = np.array([texts, texts[::-1]], dtype=object).T
    assert (two.predict_proba(frame) == pairs.predict_proba(array)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        two.predict(frame[["body", "subject"]])
    with pytest.raises(ValueError, match="X has 1 features, but Classifier is expecting 2 features"):
        pairs.predict(texts)


def test_a_pickled_one_needs_no_file_of_its_run(rows: Rows, tmp_path: Path) -> None:
    estimator = adapter().fit(*rows)
    joblib.dump(estimator, tmp_path / "kept.joblib")
    again = joblib.load(tmp_path / "kept.joblib")
    assert (again.predict_proba(rows[0]) == estimator.predict_proba(rows[0])).all()
    assert again.method_ == "adapter" and again.price_tag_["trained_parameters"].value > 0


@pytest.mark.slow
def test_what_scikit_learn_makes_of_it(rows: Rows) -> None:
    texts, labels = rows
    svm = gw.Classifier("tfidf_svm")
    cleaned = make_pipeline(FunctionTransformer(lambda found: [text.upper() for text in found]), svm)
    assert cross_val_score(cleaned, texts, labels, cv=3).mean() > 0.9
    assert cross_val_predict(svm, np.array(texts), labels, cv=2, method="predict_proba").shape == (60, 2)
    calibrated = CalibratedClassifierCV(svm, cv=2).fit(texts, labels)
    assert calibrated.score(texts, labels) > 0.9
    voting = VotingClassifier([("svm", svm), ("probe", adapter(method="linear_probe"))], voting="soft")
    assert voting.fit(texts, labels).score(texts, labels) > 0.9


@pytest.mark.slow
def test_a_grid_over_methods_and_rates_in_two_processes(rows: Rows, own_home: Path) -> None:
    grid = {"method": ["adapter", "lora:rank=2"], "learning_rate": [1e-3, 1e-2]}
    found = GridSearchCV(adapter(), grid, cv=2, n_jobs=2, error_score="raise").fit(*rows)
    assert len(found.cv_results_["params"]) == 4
    assert found.best_estimator_.method_.partition(":")[0] in ("adapter", "lora")
    alone = GridSearchCV(adapter(), grid, cv=2).fit(*rows)
    assert alone.cv_results_["mean_test_score"].tolist() == found.cv_results_["mean_test_score"].tolist()


@pytest.mark.slow
def test_an_error_comes_back_from_another_process(rows: Rows) -> None:
    search = GridSearchCV(gw.Classifier(), {"method": ["lorra", "adaptor"]}, cv=2, n_jobs=2, error_score="raise")
    with pytest.raises(UnknownName, match="unknown method 'lorra'"):
        search.fit(*rows)


def test_fits_of_the_same_rows_share_the_frozen_passes(rows: Rows, own_home: Path) -> None:
    adapter(method="top_layers:k=1").fit(*rows)
    entries = {path.name: path.stat().st_ino for path in own_home.rglob("*.safetensors")}
    assert entries
    adapter(method="top_layers:k=1", learning_rate=1e-2).fit(*rows)
    assert {path.name: path.stat().st_ino for path in own_home.rglob("*.safetensors")} == entries


def test_runs_are_kept_and_found_again(rows: Rows, tmp_path: Path) -> None:
    estimator = adapter(runs=tmp_path / "kept").fit(*rows)
    [first] = (tmp_path / "kept").glob("*/result.json")
    written = first.stat().st_mtime_ns
    again = clone(estimator).fit(*rows)
    assert first.stat().st_mtime_ns == written
    assert (again.predict_proba(rows[0]) == estimator.predict_proba(rows[0])).all()
    assert gw.TaskModule.load(first.parent).predict(rows[0][:1])[0]["label"] == estimator.predict(rows[0][:1])[0]


@pytest.mark.slow
def test_a_budget_finds_the_method(rows: Rows) -> None:
    estimator = gw.Classifier(budget="1h", backbone="tiny_text", epochs=1).fit(*rows)
    assert estimator.method_ and estimator.score(*rows) > 0.6
    for both in ({"method": "adapter"}, {"learning_rate": 0.1}):
        with pytest.raises(ConfigError, match="budget finds the method"):
            gw.Classifier(budget="1h", **both).fit(*rows)


@pytest.mark.slow
def test_seeds_are_those_of_train_or_drawn(rows: Rows) -> None:
    one, two = (adapter(random_state=seed).fit(*rows).predict_proba(rows[0]) for seed in (0, np.int64(1)))
    assert (one != two).any()
    assert (adapter(random_state=1).fit(*rows).predict_proba(rows[0]) == two).all()
    drawn = [adapter(random_state=np.random.RandomState(5)).fit(*rows).predict_proba(rows[0]) for _ in range(2)]
    assert (drawn[0] == drawn[1]).all()


def test_the_share_for_validation_is_never_trained_on(rows: Rows, tmp_path: Path) -> None:
    adapter(method="tfidf_svm", validation_fraction=0.5, runs=tmp_path / "kept").fit(*rows)
    texts = texts_in(tmp_path / "kept")
    assert sorted(texts["train"] + texts["validation"]) == sorted(rows[0])
    assert len(texts["validation"]) == 30 and texts["test"] == texts["validation"]


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        ("a text", ["a"], "one text where a list of texts is expected"),
        ([None] * 20, ["a", "b"] * 10, "X, row 0: the text is missing"),
        (["x"] * 19 + [float("nan")], ["a", "b"] * 10, "X, row 19: the text is missing"),
        ([f"x{n}" for n in range(20)], ["a"] * 19 + [float("nan")], "y, row 19: the label is missing"),
        ([[1.5]] * 20, ["a", "b"] * 10, "X, row 0: this is no text"),
        ([["x", 3]] * 20, ["a", "b"] * 10, "X, row 0, column 1: this is no text"),
        (["x"] * 19 + [" "], ["a", "b"] * 10, "X, row 19: the text is empty"),
        ([["x", "y", "z"]] * 20, ["a", "b"] * 10, "X has too many columns"),
        ([f"x{n}" for n in range(20)], None, "requires y to be passed"),
        ([f"x{n}" for n in range(20)], ["a", None] * 10, "y, row 1: the label is missing"),
        ([f"x{n}" for n in range(20)], ["a"] * 20, "there is nothing to learn"),
        ([f"x{n}" for n in range(20)], ["a", "b"] * 9, "inconsistent numbers of samples"),
        ([f"x{n}" for n in range(9)], ["a", "b", "a"] * 3, "too few rows to hold some out"),
        (["x"] * 20, ["a", "b"] * 10, "no row is left for validation"),
    ],
)
def test_bad_rows_are_value_errors_that_name_the_row(X: Any, y: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        gw.Classifier("tfidf_svm").fit(X, y)


def test_the_labels_among_the_texts_are_refused() -> None:
    with pytest.raises(InputError, match="a column of X is y"):
        gw.Classifier("tfidf_svm").fit(np.array([["good", "yes"], ["bad", "no"]] * 8, dtype=object), ["yes", "no"] * 8)


def test_other_errors(rows: Rows) -> None:
    with pytest.raises(NotFittedError):
        gw.Classifier().predict(rows[0])
    with pytest.raises(InputError, match="validation_fraction must be above 0 and below 1"):
        gw.Classifier("tfidf_svm", validation_fraction=1).fit(*rows)
    with pytest.raises(ConfigError, match="does not take a learning rate"):
        gw.Classifier("tfidf_svm", learning_rate=0.1).fit(*rows)
    with pytest.warns(UserWarning, match="tfidf_svm does not use epochs: it has no effect"):
        gw.Classifier("tfidf_svm", epochs=2).fit(*rows)
    with pytest.raises(TypeError, match="sample_weight"):
        gw.Classifier("tfidf_svm").fit(*rows, sample_weight=[1] * 60)  # type: ignore[call-arg]


@pytest.mark.slow
def test_class_weights_are_those_of_the_task(rows: Rows) -> None:
    texts, labels = rows[0], [int(label == rows[1][0]) for label in rows[1]]
    keep = [place for place, label in enumerate(labels) if label or place % 5 == 0]
    X, y = [texts[place] for place in keep], np.array([labels[place] for place in keep])
    made = {
        str(weight): gw.Classifier("linear_probe", backbone="tiny_text", class_weight=weight).fit(X, y)
        for weight in (None, "balanced", {0: 9, 1: 1}, {0: 9})
    }
    shares = {name: one.predict_proba(X)[:, 0].mean() for name, one in made.items()}
    assert shares["None"] < shares["balanced"] and shares["None"] < shares["{0: 9}"]
    assert shares["{0: 9}"] == shares["{0: 9, 1: 1}"], "a class that is not named has weight 1, as in scikit-learn"


def test_bad_class_weights(rows: Rows) -> None:
    for weight, told in (("auto", "class_weight"), ({"other": 2}, "are not in class_weight")):
        with pytest.raises(ValueError, match=told):
            gw.Classifier("tfidf_svm", class_weight=weight).fit(*rows)
    with pytest.raises(ConfigError, match="a weight that can't be used"):
        gw.Classifier("tfidf_svm", class_weight={rows[1][0]: 0}).fit(*rows)
    with pytest.warns(UserWarning, match="majority does not use class_weight: it has no effect"):
        gw.Classifier("majority", class_weight="balanced").fit(*rows)
