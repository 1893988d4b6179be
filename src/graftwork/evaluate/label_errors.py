"""Suspected label errors: examples whose predicted class probabilities speak against their given label.

Their number is estimated by confident learning (Northcutt, Jiang & Chuang 2021, arXiv:1911.00068): the threshold of a
class is its mean probability over the examples with this label. An example counts as an error if, of the classes whose
probability reaches their threshold, the most probable is not the given one. As many examples are suspects, those
with the least probable labels: thresholds alone miss errors of many classes with few rows (benchmarks/label_errors).
Probabilities must come from models that did not train on the examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LabelSuspect:
    """An example whose label is suspected."""

    row: int
    likely: int  # the class that it seems to have
    confidence: float  # probability of the given class


def suspected_labels(probabilities: NDArray[np.float64], given: NDArray[np.int64]) -> list[LabelSuspect]:
    """Return the suspected rows from (N, C) probabilities and (N,) given classes, the least probable label first.

    In each of them another class is more probable. A class without examples is never the likely one.
    """
    rows = np.arange(len(given))
    own = probabilities[rows, given]  # (N,)
    counts = np.bincount(given, minlength=probabilities.shape[1])
    means = np.bincount(given, own, minlength=probabilities.shape[1]) / np.maximum(counts, 1)
    thresholds = np.where(counts > 0, means, np.inf)  # (C,)
    reached = np.where(probabilities >= thresholds, probabilities, -1.0)
    expected = np.count_nonzero((reached.max(axis=1) >= 0) & (reached.argmax(axis=1) != given))
    likely = np.where(counts > 0, probabilities, -1.0).argmax(axis=1)
    doubtful = np.flatnonzero(likely != given)
    order = doubtful[np.argsort(own[doubtful], kind="stable")][:expected]
    return [LabelSuspect(int(row), int(likely[row]), float(own[row])) for row in order]


def mean_probabilities(of_methods: Sequence[Sequence[NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Return (N, C) class probabilities: the mean over methods of the mean over a method's runs, from (N, C) logits."""
    from scipy.special import softmax

    means = [np.mean([softmax(logits, axis=1) for logits in runs], axis=0) for runs in of_methods]
    return np.asarray(np.mean(means, axis=0), dtype=np.float64)
