"""Character accuracy: 1 minus the character error rate (CER), the edits that turn what was written into the reference,
for each character of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.text_scores import edit_statistics


def _characters(text: str) -> list[str]:
    return list(text)


class CharacterAccuracy:
    """1 - `jiwer.cer` of all texts in lower case, without punctuation. Below 0 where errors outnumber characters."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Texts -> (N, 2): the edits, and the characters of the reference. Raises `ConfigError` for anything else."""
        return edit_statistics("character_accuracy", _characters, targets, predictions, task)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 2) -> (…)."""
        return 1.0 - ratio(means[..., 0], means[..., 1])


metrics.register("character_accuracy")(CharacterAccuracy())
