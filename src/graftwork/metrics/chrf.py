"""ChrF: F-score of the character n-grams that written texts and references share, recall counting twice
(Popović 2015, doi:10.18653/v1/W15-3049)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.text_scores import sacrebleu_signature, sacrebleu_statistics

FACTOR = 4.0  # beta squared


class Chrf:
    """Equal to `sacrebleu.CHRF().corpus_score` / 100: n-grams of 1 to 6 characters, case kept, no white space."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Texts -> (N, 18): for each n = 1 … 6, n-grams of the text, n-grams of its best reference, shared n-grams.

        Raises `ConfigError` for anything but texts, `MissingExtra` without sacrebleu.
        """
        return sacrebleu_statistics("chrf", "CHRF", targets, predictions, task)

    def signature(self, targets: Numbers) -> str:
        """Return sacrebleu's signature, which names its version and settings."""
        return sacrebleu_signature("chrf", "CHRF", targets)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 18) -> (…)."""
        found, wanted, shared = (means[..., place::3] for place in range(3))  # each (…, 6)
        seen = (found > 1e-12) & (wanted > 1e-12)  # n for which both sides have n-grams
        precision, recall = (ratio((ratio(shared, all_) * seen).sum(-1), seen.sum(-1)) for all_ in (found, wanted))
        return ratio((1 + FACTOR) * precision * recall, FACTOR * precision + recall)


metrics.register("chrf")(Chrf())
