"""The classifier two-sample test on features of a frozen network (Lopez-Paz & Oquab 2017, arXiv:1610.06545).

The classifier is Fisher's discriminant, fitted as a ridge regression: its out-of-fold scores are a linear function of
the labels, so a thousand permutations of them cost a matrix product. The permutation test is exact, unlike a binomial
test over folds, because folds share training rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

FOLDS = 5
PERMUTATIONS = 999
RIDGE = 0.1  # penalty per row, for features of unit variance
FEWEST = 20  # minimum rows of each set
LEVEL, POWER_Z = 0.05, 0.8416  # significance level; and the normal quantile of a power of 80 %

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TwoSample:
    """The result of the test. Chance is an AUC of 0.5."""

    auc: float  # probability that the classifier ranks a new row above a reference row
    low: float  # approximate 95 % interval
    high: float
    accuracy: float  # balanced accuracy
    p: float  # p-value: probability of at least this AUC under permuted labels
    smallest: float  # smallest AUC that the test detects with 80 % power on these rows
    ratios: Floats  # (m,) per new row: density among new rows over density among reference rows


def two_sample(reference: Floats, new: Floats, groups: NDArray[np.int64], seed: int = 0) -> TwoSample:
    """Compare features (n, P) and (m, P), at least `FEWEST` rows each; rows of one group (n + m,) stay in one fold.

    `seed` draws the folds and the permutations.
    """
    n, m = len(reference), len(new)
    assert min(n, m) >= FEWEST and len(groups) == n + m
    random = np.random.Generator(np.random.Philox(key=np.array([seed, 0], dtype=np.uint64)))
    labels = np.repeat([-m / (n + m), n / (n + m)], [n, m])  # their sum is 0
    permuted = np.stack([labels, *(random.permutation(labels) for _ in range(PERMUTATIONS))], axis=1)
    _, codes = np.unique(groups, return_inverse=True)
    folds = (random.permutation(int(codes.max()) + 1) % FOLDS)[codes]
    scores = _out_of_fold(np.concatenate([reference, new]), permuted, folds)
    areas = _areas(scores, permuted > 0)
    auc, drawn = float(areas[0]), areas[1:]
    even = math.sqrt((n + m + 1) / (12 * n * m))  # standard error under the null hypothesis for independent rows
    spread = _standard_error(auc, n, m) * max(1.0, float(drawn.std()) / even)
    chances = _chances(scores[:, 0], labels > 0)
    return TwoSample(
        auc=auc,
        low=max(0.0, auc - 1.96 * spread),
        high=min(1.0, auc + 1.96 * spread),
        accuracy=float((chances[:n] < 0.5).mean() + (chances[n:] >= 0.5).mean()) / 2,
        p=float(1 + (drawn >= auc).sum()) / (1 + PERMUTATIONS),
        smallest=min(1.0, float(np.quantile(drawn, 1 - LEVEL)) + POWER_Z * float(drawn.std())),
        ratios=chances[n:] / (1 - chances[n:]),
    )


def _out_of_fold(features: Floats, labels: Floats, folds: NDArray[np.int64]) -> Floats:
    """Return (N, K) scores of each row by a fit to the other folds, from features (N, P) and labels (N, K)."""
    spread = features.std(axis=0)
    inputs = (features - features.mean(axis=0)) / np.where(spread < 1e-9, 1.0, spread)
    scores = np.zeros_like(labels)
    for fold in np.unique(folds) if np.ptp(folds) else ():  # a single fold leaves no rows to fit to
        held = folds == fold
        fitted = inputs[~held]
        penalty = RIDGE * len(fitted) * np.eye(inputs.shape[1])
        weights = np.linalg.solve(fitted.T @ fitted + penalty, fitted.T @ labels[~held])
        scores[held] = inputs[held] @ weights
    return scores


def _areas(scores: Floats, of_new: NDArray[np.bool_]) -> Floats:
    """Return (K,) areas under the ROC curve from (N, K) scores and whether rows are new (N, K); ties count half."""
    ranks = rankdata(scores, axis=0)
    new = of_new.sum(axis=0)
    return np.asarray(((ranks * of_new).sum(axis=0) - new * (new + 1) / 2) / (new * (len(scores) - new)))


def _standard_error(auc: float, n: int, m: int) -> float:
    """Standard error of an AUC over independent rows (Hanley & McNeil 1982, doi:10.1148/radiology.143.1.7063747)."""
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (n - 1) * (one - auc**2) + (m - 1) * (two - auc**2)
    return math.sqrt(max(0.0, variance) / (n * m))


def _chances(scores: Floats, of_new: NDArray[np.bool_]) -> Floats:
    """Return (N,) probabilities that a row is new, with balanced sets: a logistic fit to the scores (Platt 1999)."""
    inputs = (scores / max(float(scores.std()), 1e-12))[:, None]
    curve = LogisticRegression(class_weight="balanced").fit(inputs, of_new)
    return np.asarray(np.clip(curve.predict_proba(inputs)[:, 1], 1e-6, 1 - 1e-6))
