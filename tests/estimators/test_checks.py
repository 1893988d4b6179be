"""scikit-learn's own checks of estimators: those that a reader of texts can pass as they are, and the others on numbers
that are written as texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

import graftwork as gw


def texts_of_numbers(X: NDArray[Any]) -> list[str]:
    """Each row as a text: for every column a word for the whole number that its value is nearest to, in units of ½."""
    return [" ".join(f"c{place}v{round(2 * value)}" for place, value in enumerate(row)) for row in X.tolist()]


class _OfNumbers:
    """Writes numbers as texts before an estimator sees them; everything else is the estimator's own."""

    def _rows(self, X: Any, *, reset: bool) -> Any:
        X = validate_data(self, X, reset=reset)
        columns = self.n_features_in_
        rows = super()._rows(texts_of_numbers(X), reset=True)  # type: ignore[misc]
        self.n_features_in_ = columns
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = tags.input_tags.one_d_array = False
        return tags


class ClassifierOfNumbers(_OfNumbers, gw.Classifier):
    pass


class RegressorOfNumbers(_OfNumbers, gw.Regressor):
    pass


@parametrize_with_checks([gw.Classifier("tfidf_svm"), gw.Regressor("tfidf_svm")])
def test_as_they_are(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@parametrize_with_checks([ClassifierOfNumbers("tfidf_svm"), RegressorOfNumbers("tfidf_svm")])
def test_on_numbers_as_texts(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
