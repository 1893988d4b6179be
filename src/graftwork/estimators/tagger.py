"""A tagger of words for scikit-learn."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length

from graftwork.core.ragged import flat
from graftwork.core.task import Task
from graftwork.errors import InputError
from graftwork.estimators.given_rows import Inputs, columns_of, strings_of, words_of
from graftwork.estimators.trained_estimator import TrainedEstimator
from graftwork.evaluate.score import scores_on
from graftwork.module.predict_many import logit_windows
from graftwork.registry import kinds


class Tagger(TrainedEstimator):
    """A scikit-learn tagger of words: as `Classifier`, without class weights, on lists of words and their tags.

    X is N lists of words, y is N lists of tags, one tag per word. Tags that mark spans may be in any usual scheme (BIO,
    IOB1, BIOES, …); predicted ones are B-TYPE, I-TYPE and O.

    After `fit`, `classes_` (C,) are the tags that can be predicted.
    """

    KIND: ClassVar[str] = "tagging"

    def fit(self, X: Any, y: Any) -> Self:
        """Train on N lists of words and N lists of tags."""
        rows = self._rows(X, reset=True)
        self._train(rows, _tags_of(rows, y))
        self.classes_ = np.array(self.module_.task.labels)
        return self

    def predict(self, X: Any) -> list[list[str]]:
        """Return the N lists of predicted tags, one tag per word."""
        module, kind, found = self.module_, kinds.get(self.KIND), list[list[str]]()
        for window, [logits], _ in logit_windows([module], module.examples(self._as_module_input(X))):
            tags = iter(flat(kind.predictions(logits, module.task)).tolist())
            found += [[module.task.labels[next(tags)] for _ in example.inputs["words"]] for example in window]
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the score in the first of `metrics`; by default entity F1 if the tags mark spans, else accuracy."""
        rows = words_of(X)
        with tempfile.TemporaryDirectory(prefix="graftwork-") as folder:
            task = Task.from_data(columns_of(rows, _tags_of(rows, y)), folder=folder, kind=self.KIND)
            found = scores_on(self.module_, task, task.data)
        return found[self.module_.task.metrics[0]]

    def _rows(self, X: Any, *, reset: bool) -> list[Inputs]:
        return words_of(X)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, changed so that X is no 2-D array but lists of words."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _tags_of(rows: Sequence[Any], y: Any) -> list[tuple[str, ...]]:
    """Return the tags of each row. Raises `InputError` for a row without as many tags as words."""
    if y is None:
        raise InputError("Tagger requires y to be passed, but the target y is None", do="give the tags of each row")
    tags = [strings_of(given, f"y, row {place}", "tags") for place, given in enumerate(y)]
    check_consistent_length(rows, tags)
    for place, (row, given) in enumerate(zip(rows, tags, strict=True)):
        if len(row["words"]) != len(given):
            got = f"{len(row['words'])} words, {len(given)} tags"
            raise InputError(
                "the numbers of words and tags differ", where=f"y, row {place}", got=got, do="mend the row"
            )
    return tags
