"""Folds of train: a method chooses between its fits on training rows that these fits did not see.

Such a choice leaves validation untouched. The best of many fits on a few validation rows is often a lucky one, and its
score on these rows is too high (Cawley & Talbot 2010, JMLR 11).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import plain
from graftwork.core.method import Scorer, Workbench
from graftwork.io.files import digest

FOLDS = 5
ENOUGH = 1000  # examples held out: where a few folds have as many, the others are never held out


def folds_of(bench: Workbench) -> NDArray[np.int64]:
    """Return the fold (N,) of every training example, -1 if it is never held out.

    Strata are spread evenly, equal inputs stay together.
    """
    examples = bench.train.examples
    keys = [digest(plain(example.inputs)) for example in examples]
    strata = map(repr, bench.setting.kind.strata([example.target for example in examples]))
    numbers: dict[str, int] = {}
    for _, key in sorted(zip(strata, keys, strict=True)):
        numbers.setdefault(key, len(numbers) % FOLDS)
    folds = np.array([numbers[key] for key in keys], dtype=np.int64)
    return np.where(folds < math.ceil(FOLDS * ENOUGH / len(folds)), folds, -1)


def parts_of(folds: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield fold by fold the indices of the rows held out and of all others, which are never none."""
    for number in range(folds.max() + 1):
        here, others = np.flatnonzero(folds == number), np.flatnonzero(folds != number)
        if len(here) and len(others):
            yield here, others


def train_scorer(bench: Workbench) -> Scorer:
    """Return the score of outputs for training examples by the headline metric of the task."""
    return Scorer(bench.setting.task.metrics[0], bench.setting, bench.train)
