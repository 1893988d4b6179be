"""Confidence of predictions, and the stored summary of it that later confidence is compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example, text_of
from graftwork.core.media import Media

COVERAGE = 0.95


@dataclass(frozen=True)
class Moments:
    """Summary of a sample: mean, standard deviation and size."""

    mean: float
    sd: float
    rows: int

    @classmethod
    def of(cls, values: Sequence[float] | NDArray[Any]) -> Moments | None:
        """Summarise the values; None for fewer than two."""
        listed = np.asarray(values, dtype=np.float64)
        return cls(float(listed.mean()), float(listed.std(ddof=1)), len(listed)) if len(listed) > 1 else None

    def less(self, other: Moments) -> dict[str, float]:
        """Return the mean minus another sample's, with a 95 % interval (Welch 1947: Student's t, unequal variances)."""
        from scipy.stats import t as student

        parts = [(of.sd**2 / of.rows, of.rows - 1) for of in (self, other)]
        change, spread = self.mean - other.mean, math.sqrt(sum(part for part, _ in parts))
        shares = sum((part / spread**2) ** 2 / freedom for part, freedom in parts) if spread else 0.0
        half = float(student.ppf((1 + COVERAGE) / 2, 1 / shares)) * spread if shares else 0.0
        return {"change": change, "low": change - half, "high": change + half}


def confidence_of(answer: Mapping[str, Any]) -> float | None:
    """Return the probability of the prediction in an answer of a kind's `decode`; None if it has none.

    For several labels, tags or spans it is the mean; a label of a multilabel task counts with max(p, 1 - p).
    """
    if "probability" in answer:
        return float(answer["probability"])
    if answer.get("spans"):
        return float(np.mean([span["probability"] for span in answer["spans"]]))
    chances = answer.get("probabilities")
    if not chances:
        return None
    values = np.array(list(chances.values()) if isinstance(chances, Mapping) else chances)
    if isinstance(answer.get("label"), list):
        return float(np.maximum(values, 1 - values).mean())
    if "expected_cost" in answer:  # the label may not be the most probable one
        return float(chances[answer["label"]])
    return float(values.mean() if "tags" in answer else values.max())


def confidences(answers: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the confidences of the answers that have one."""
    return [found for answer in answers if (found := confidence_of(answer)) is not None]


def words_in(example: Example) -> int:
    """Return the number of words in all texts of an example; 0 for an image or a sound."""
    texts = (text_of(given) for given in example.inputs.values() if not isinstance(given, Media))
    return sum(len(text.split()) for text in texts)


def held_out_summary(examples: Sequence[Example], answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise held-out examples for a module's description: their word counts, and the confidence of its answers."""
    words = [words_in(one) for one in examples]
    found = {"words": Moments.of(words) if any(words) else None, "confidence": Moments.of(confidences(answers))}
    return {name: dict(vars(moments)) for name, moments in found.items() if moments is not None}
