"""A scikit-learn pipeline of TF-IDF and a linear SVM, made from arrays and words in a folder, without pickle.

A copy of this file is in each exported folder. It needs scikit-learn and nothing of Graftwork.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC, LinearSVR


def load(folder: str | Path) -> Pipeline:
    """Return the fitted pipeline: `predict` gives labels, rows of 0 and 1 (multilabel), or values (regression).

    `decision_function` gives the logits (N, C) of classifiers.
    """
    told = json.loads(Path(folder, "pipeline.json").read_text(encoding="utf-8"))
    with np.load(Path(folder, "weights.npz"), allow_pickle=False) as stored:
        weight, bias, idf = stored["weight"], stored["bias"], stored["idf"]  # (C, F), (C,), (F,)
    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=told["token"], vocabulary=told["vocabulary"]
    )
    words.idf_ = idf
    return Pipeline([("tfidf", words), ("svm", _svm(told["kind"], told["labels"], weight, bias))])


def _svm(kind: str, labels: list[str], weight: Any, bias: Any) -> Any:
    if kind == "regression":
        model = LinearSVR()
        model.coef_, model.intercept_, model.n_features_in_ = weight[0], bias, weight.shape[1]
        return model
    if kind == "classification":
        return _classifier(weight, bias, labels)
    model = OneVsRestClassifier(LinearSVC())
    rows = zip(weight[:, None], bias[:, None], strict=True)
    model.estimators_ = [_classifier(*row, [0, 1]) for row in rows]
    model.label_binarizer_ = LabelBinarizer().fit(np.eye(len(labels), dtype=int))
    return model


def _classifier(weight: Any, bias: Any, labels: list[Any]) -> LinearSVC:
    model = LinearSVC()
    model.coef_, model.intercept_, model.classes_ = weight, bias, np.array(labels)
    model.n_features_in_ = weight.shape[1]
    return model
