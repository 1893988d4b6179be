"""A classifier of texts for scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from graftwork.core.class_weights import BALANCED
from graftwork.errors import InputError, clip
from graftwork.estimators.given_rows import column_of, require_no_target
from graftwork.estimators.trained_estimator import TrainedEstimator


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, TrainedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn classifier of texts or pairs of texts that trains any method of `graft train`.

    X is a list, an array or a Series of N texts, or a data frame with one column of texts, or two for pairs of texts.
    y has N labels: texts, whole numbers or other values that `numpy.unique` can sort.

    `method` is one of `graft ls methods`, such as "lora:rank=8" (default: adapter). Alternatively `budget`, such as
    "2min", searches for the best method, as `graft train --budget` does. The parameters that are not described here
    are those of `graftwork.train`.

    A share `validation_fraction` of the rows of each class is held out of training. On these rows the first of
    `metrics` decides the number of epochs and the other choices of a method. They are drawn by a hash of their texts.
    No test split is drawn: hold out rows yourself, as `cross_val_score` does. `graft train` with the same rows in its
    training and --validation files gives the same predictions. `random_state` seeds initialisation and row order.

    `class_weight` weights the classes in the training loss: "balanced", or class -> weight above 0 (default 1). Only
    the ratios of the weights matter. Without `budget`, `fit` warns if the method does not use class weights.

    `fit` removes its files, except the cache of the frozen backbone's hidden states, which all fits and processes
    share. With `runs`, the run is kept in that folder, and a fit with equal data and parameters reuses it. A pickled
    estimator holds the task module without the backbone, which is opened by name. `sample_weight` is not supported.

    After `fit`: `classes_` (C,), in the dtype of y; `n_features_in_`; for a data frame `feature_names_in_`;
    `method_`, the method with its settings; `validation_scores_`, metric -> score; `price_tag_`, cost -> `Cost`;
    `module_`, the open `TaskModule`.

    Raises `InputError`, which is a `ValueError`, for bad X or y, and the `GraftworkError`s of `graftwork.train`.
    """

    KIND: ClassVar[str] = "classification"

    class_weight: str | Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts X (N,) or (N, 1) or pairs (N, 2), and labels y (N,)."""
        labels = column_of(y, self)
        check_classification_targets(labels)
        rows = self._rows(X, reset=True)
        check_consistent_length(rows, labels)
        require_no_target(rows, labels)
        classes, encoded = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            got = f"one class, {clip(str(classes[0]))}"
            raise InputError("there is nothing to learn", got=got, expected="two classes or more")
        names = names_of(classes)
        weights = self.class_weight
        if weights is not None and not (isinstance(weights, str) and weights == BALANCED):
            weights = dict(zip(names, compute_class_weight(weights, classes=classes, y=labels).tolist(), strict=True))
        self._train(rows, [names[place] for place in encoded.tolist()], class_weights=weights)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (N, C) probabilities, in the order of `classes_`; each row sums to 1."""
        answers, names = self._answers(X), names_of(self.classes_)
        return np.array([[answer["probabilities"][name] for name in names] for answer in answers])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the (N,) predicted labels, in the dtype of `classes_`."""
        answers, names = self._answers(X), names_of(self.classes_)
        places = {name: place for place, name in enumerate(names)}
        return np.asarray(self.classes_[[places[answer["label"]] for answer in answers]])


def names_of(classes: NDArray[Any]) -> list[str]:
    """Convert the classes (C,) to C task labels, which are strings: 3 becomes `"3"`."""
    return [str(label) for label in classes.tolist()]
