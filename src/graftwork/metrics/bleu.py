"""BLEU: how many n-grams of the written texts are in their references, with a penalty for texts that are too short
(Papineni et al. 2002, doi:10.3115/1073083.1073135)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.text_scores import sacrebleu_signature, sacrebleu_statistics

ORDERS = 4


class Bleu:
    """Equal to `sacrebleu.BLEU().corpus_score` / 100: tokenizer 13a, case kept, exponential smoothing."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Texts -> (N, 11): tokens; tokens of the reference nearest in length; shared n-grams, n = 1 … 4; all; and N.

        Smoothing depends on N, which is in every row so that its mean is N. Raises `ConfigError` for anything but
        texts, `MissingExtra` without sacrebleu.
        """
        counts = sacrebleu_statistics("bleu", "BLEU", targets, predictions, task)
        return np.column_stack([counts, np.full(len(counts), float(len(counts)))])

    def signature(self, targets: Numbers) -> str:
        """Return sacrebleu's signature, which names its version and settings."""
        return sacrebleu_signature("bleu", "BLEU", targets)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 11) -> (…)."""
        length, reference = means[..., 0], means[..., 1]
        right, total = means[..., 2 : 2 + ORDERS], means[..., 2 + ORDERS : 2 + 2 * ORDERS]
        missed = right < 1e-12
        halvings = np.cumsum(missed, axis=-1)  # smoothing: the k-th order without a hit counts as 1 / 2^k hits in all
        hits = np.where(missed, 0.5**halvings / np.maximum(means[..., -1:], 1.0), right)
        defined = np.asarray((total > 1e-12).all(axis=-1) & ~missed.all(axis=-1))
        precisions = np.where(defined[..., None], ratio(hits, total), 1.0)
        shortness = np.exp(np.minimum(0.0, 1.0 - ratio(reference, length)))
        return np.where(defined, shortness * np.exp(np.log(precisions).mean(axis=-1)), 0.0)


metrics.register("bleu")(Bleu())
