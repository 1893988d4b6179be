"""A classifier of texts for scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from graftwork.errors import InputError, clip
from graftwork.estimators.given_rows import Inputs, column_of, texts_of
from graftwork.estimators.trained_estimator import TrainedEstimator


class Classifier(ClassifierMixin, TrainedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of texts, with everything that `graft train` can train, as an estimator of scikit-learn.

    X is a list, an array or a Series of N texts, or a frame of one column of texts, or of two: pairs of texts. y has
    N labels: texts, whole numbers or whatever else `numpy.unique` sorts.

    `method` is one of `graft ls methods`, such as "lora:rank=8" (default: adapter); `budget`, such as "2min", finds the
    best method instead, as `graft train --budget` does. The other parameters are those of `graftwork.train`.

    `validation_fraction` of the rows of each class are never trained on: epochs, and what else a method chooses, are
    chosen by their score on `metrics`, the first of them. Which rows these are depends on their texts alone. No row is
    taken for a test: hold out rows yourself, as `cross_val_score` does. On the same rows, named with --validation, the
    predictions are those of `graft train`. `random_state` is its seed, of initialisation and order.

    A fit leaves nothing behind but the cache of the frozen backbone's states, which is shared by all fits and all
    processes; with `runs` its run is kept there, and found again by an equal fit. Pickled, it holds the module's files
    and not its backbone, which is opened by its name. Weights of samples are not supported.

    After `fit`: `classes_` (C,), in the dtype of y; `n_features_in_`, and of a frame `feature_names_in_`;
    `method_`, the method with its settings; `validation_scores_`, metric -> score; `price_tag_`, cost -> `Cost`;
    `module_`, the open `TaskModule`.

    Raises `InputError`, which is a `ValueError`, for bad X or y, and `GraftworkError` as `graftwork.train`.
    """

    KIND: ClassVar[str] = "classification"

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts X (N,) or (N, 1) or pairs (N, 2), and labels y (N,)."""
        labels = column_of(y, self)
        check_classification_targets(labels)
        rows = self._rows(X, reset=True)
        check_consistent_length(rows, labels)
        classes, encoded = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            got = f"one class, {clip(str(classes[0]))}"
            raise InputError("there is nothing to learn", got=got, expected="two classes or more")
        names = names_of(classes)
        self._train(rows, [names[place] for place in encoded.tolist()])
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (N, C) probabilities, in the order of `classes_`; each row sums to 1."""
        answers, names = self._answers(X), names_of(self.classes_)
        return np.array([[answer["probabilities"][name] for name in names] for answer in answers])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return (N,) labels, the most probable ones, in the dtype of `classes_`."""
        answers, names = self._answers(X), names_of(self.classes_)
        places = {name: place for place, name in enumerate(names)}
        return np.asarray(self.classes_[[places[answer["label"]] for answer in answers]])

    def _rows(self, X: Any, *, reset: bool) -> list[Inputs]:
        return texts_of(self, X, reset=reset)


def names_of(classes: NDArray[Any]) -> list[str]:
    """Return the name of each class (C,) as a label of a task: that of 3 is `3`."""
    return [str(label) for label in classes.tolist()]
