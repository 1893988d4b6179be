"""A classifier of texts for scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
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

    `class_weight` weighs the classes in the training loss: "balanced", or class -> weight above 0, where a class that
    is not named has 1. As in the task setting `class_weights`, only ratios count. A method that can't heed it warns.

    A fit leaves nothing but the cache of the frozen backbone's states, which is shared by all fits and all
    processes; with `runs` its run is kept there, and found again by an equal fit. Pickled, it holds the module's files
    and not its backbone, which is opened by its name. Weights of samples are not supported.

    After `fit`: `classes_` (C,), in the dtype of y; `n_features_in_`, and of a frame `feature_names_in_`;
    `method_`, the method with its settings; `validation_scores_`, metric -> score; `price_tag_`, cost -> `Cost`;
    `module_`, the open `TaskModule`.

    Raises `InputError`, which is a `ValueError`, for bad X or y, and `GraftworkError` as `graftwork.train`.
    """

    KIND: ClassVar[str] = "classification"

    def __init__(
        self,
        method: str | None = None,
        *,
        budget: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        learning_rate: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        backbone: str | None = None,
        metrics: str | Sequence[str] | None = None,
        validation_fraction: float = 0.1,
        random_state: Any = 0,
        runs: str | Path | None = None,
        precision: str | None = None,
        device: str | None = None,
        prices: str | Path | None = None,
        cache: str | Path | None = None,
        cache_size: str | None = None,
        max_memory: str | None = None,
    ) -> None:
        super().__init__(
            method,
            budget=budget,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            backbone=backbone,
            metrics=metrics,
            validation_fraction=validation_fraction,
            random_state=random_state,
            runs=runs,
            precision=precision,
            device=device,
            prices=prices,
            cache=cache,
            cache_size=cache_size,
            max_memory=max_memory,
        )
        self.class_weight = class_weight

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
        """Return (N,) labels, the most probable ones, in the dtype of `classes_`."""
        answers, names = self._answers(X), names_of(self.classes_)
        places = {name: place for place, name in enumerate(names)}
        return np.asarray(self.classes_[[places[answer["label"]] for answer in answers]])


def names_of(classes: NDArray[Any]) -> list[str]:
    """Return the name of each class (C,) as a label of a task: that of 3 is `3`."""
    return [str(label) for label in classes.tolist()]
