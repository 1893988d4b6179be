"""scikit-learn's own checks of estimators: those that a reader of texts can pass as they are, and the others on numbers
that are written as texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from numpy.typing import NDArray
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import _check_name, _yield_all_checks, parametrize_with_checks
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


FED_NUMBERS = "it fits numbers, which are no texts; the same check passes below, on numbers that are written as texts"
OF_ALL = {
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_supervised_y_2d",
}
OF_CLASSIFIERS = {
    "check_class_weight_classifiers",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_train",
}
OF_REGRESSORS = {
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
}


def fed_numbers(estimator: Any) -> dict[str, str]:
    """The checks that fit what is no text: each is refused, and `xfail_strict` says so when one is not any more."""
    own = OF_CLASSIFIERS if isinstance(estimator, gw.Classifier) else OF_REGRESSORS
    return dict.fromkeys(OF_ALL | own, FED_NUMBERS)


@parametrize_with_checks(
    [gw.Classifier("tfidf_svm"), gw.Regressor("tfidf_svm")], expected_failed_checks=fed_numbers, xfail_strict=True
)
def test_as_they_are(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([ClassifierOfNumbers("tfidf_svm"), RegressorOfNumbers("tfidf_svm")])
def test_on_numbers_as_texts(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_what_fails_as_it_is_passes_on_numbers_as_texts() -> None:
    """No check is left out: the names that fail above are among those that are run, and pass, on the other two."""
    for estimator in (ClassifierOfNumbers("tfidf_svm"), RegressorOfNumbers("tfidf_svm")):
        run = {_check_name(check) for check in _yield_all_checks(estimator, legacy=True)}
        assert fed_numbers(estimator).keys() <= run


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_mixin_order,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
    ],
)
def test_of_a_tagger(check: Callable[[str, Any], None]) -> None:
    """Those that fit nothing: X of the others is a table, and a tagger reads lists of words, as its tags say."""
    check("Tagger", gw.Tagger("perceptron_tagger"))
