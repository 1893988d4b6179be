"""A regressor of texts for scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from graftwork.estimators.given_rows import column_of
from graftwork.estimators.trained_estimator import TrainedEstimator


class Regressor(RegressorMixin, TrainedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn regressor of texts: as `Classifier`, without class weights, and with N numbers as y.

    The share `validation_fraction` is drawn from every decile of y.
    """

    KIND: ClassVar[str] = "regression"

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts X (N,) or (N, 1) or pairs (N, 2), and numbers y (N,)."""
        targets = column_of(y, self, numeric=True)
        rows = self._rows(X, reset=True)
        check_consistent_length(rows, targets)
        self._train(rows, targets.astype(float).tolist())
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the (N,) predicted numbers, in the units of y."""
        return np.array([answer["value"] for answer in self._answers(X)])
