"""TF-IDF + SVM as a pipeline of scikit-learn: the same decisions, from files without a pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.task import Task
from graftwork.methods.tfidf_svm import TfidfSvm, make_vectorizer
from graftwork.module.task_module import TaskModule, save_module
from graftwork.module.thresholds import with_thresholds
from graftwork.registry import exporters, kinds
from graftwork.ship import sklearn_pipeline

TEXTS = ["the film was good", "a bad film", "good and bad", "a film of the sea, and so on", "sea?"]


def module_of(folder: Path, kind: str, labels: tuple[str, ...]) -> TaskModule:
    """A module with random weights over the words of `TEXTS`."""
    settings = {"scale": (3.0, 2.0)} if kind == "regression" else {}
    task = Task("mood", Path(), kind=kind, labels=labels, settings=settings)
    vectorizer, draw = make_vectorizer().fit(TEXTS), np.random.default_rng(0)
    words = vectorizer.get_feature_names_out().tolist()
    outputs = max(1, len(labels))
    weights = {
        "weight": draw.normal(size=(outputs, len(words))), "bias": draw.normal(size=outputs), "idf": vectorizer.idf_
    }  # fmt: skip
    facts = {"strength": 1.0, "vocabulary": words, "features": len(words), "unspaced_apart": True}
    setting, examples = Setting(task, kinds.get(kind), None), [Example(text, {"text": text}) for text in TEXTS]
    shift = [0.5] * outputs if kind == "multilabel" else None
    fitted = with_thresholds(TfidfSvm().restore(setting, weights, facts), shift)
    about = {
        "run": "0" * 8, "method": {"name": "tfidf_svm", "version": 1}, "recipe": {}, "precision": "fp32",
        "backbone_seed": 0, "scores": {}, "trained_parameters": 1,
    }  # fmt: skip
    save_module(folder, setting, fitted, about, examples, fitted.logits(examples))
    return TaskModule.load(folder)


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("classification", ("no", "yes")),
        ("classification", ("no", "yes", "perhaps")),
        ("multilabel", ("warm", "cold", "sad")),
        ("regression", ()),
    ],
)
def test_the_pipeline_decides_alike(kind: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    module, exporter = module_of(tmp_path / "module", kind, labels), exporters.get("sklearn")
    folder = tmp_path / "exported"
    folder.mkdir()
    assert exporter.unfit(module) == ""
    exporter.write(module, folder)
    examples = [Example(text, {"text": text}) for text in [*TEXTS, "nothing known"]]
    found, expected = exporter.logits(folder, module, examples), module.fitted.logits(examples)
    assert np.abs(np.asarray(found) - np.asarray(expected)).max() < 1e-9
    answers, given = module.predict(TEXTS), sklearn_pipeline.load(folder).predict(TEXTS)
    if kind == "classification":
        assert given.tolist() == [answer["label"] for answer in answers]
    elif kind == "multilabel":
        assert [[labels[place] for place in np.flatnonzero(row)] for row in given] == [
            answer["label"] for answer in answers
        ]
    else:
        assert given.tolist() == pytest.approx([answer["value"] for answer in answers])
    assert (folder / "pipeline.py").read_text() == Path(sklearn_pipeline.__file__).read_text()
    assert json.loads((folder / "selftest.json").read_text())["inputs"][0] == {"text": TEXTS[0]}
    assert not [path.name for path in folder.iterdir() if path.suffix in (".pkl", ".joblib")]


def test_a_network_is_refused(trained: Callable[..., TaskModule]) -> None:
    module = trained("lora", "bert")
    assert "no TF-IDF + SVM" in exporters.get("sklearn").unfit(module)
