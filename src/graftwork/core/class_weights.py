"""Weights of classes in the training loss; the mean weight of a training example is 1 (scikit-learn's "balanced")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import Kind
from graftwork.core.ragged import Numbers, flat
from graftwork.core.task import Task

if TYPE_CHECKING:
    from torch import Tensor

BALANCED = "balanced"  # every class has the same total weight: n / (classes x count)


@dataclass(frozen=True)
class ClassWeights:
    """The loss of a kind in which an example, or a word, counts by its class. Implements `TrainingLoss`."""

    kind: Kind
    factors: NDArray[np.float64]  # (C,); multilabel (2, C): for examples without and with the label

    def of_targets(self, targets: Numbers) -> NDArray[np.float64]:
        """Return the weight of each encoded target: (N,) for classes, (W,) for words, (N, C) if multilabel."""
        encoded = flat(targets)
        if self.factors.ndim == 1:
            return np.asarray(self.factors.take(encoded.astype(np.int64)))
        return np.asarray(np.where(encoded > 0, self.factors[1], self.factors[0]))

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the weighted cross entropy of (B, C) logits, in nats: the sum of weight x loss over B, not over the
        weights of the batch, so that a batch of rare classes counts more."""
        from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

        factors = logits.new_tensor(self.factors)
        if factors.ndim == 1:
            return cross_entropy(logits, targets, weight=factors, reduction="sum") / max(1, len(targets))
        return binary_cross_entropy_with_logits(logits, targets, weight=factors[1].where(targets > 0, factors[0]))

    def weight(self, targets: Tensor) -> float:
        """Return the count that the loss averages over: that of the kind."""
        return self.kind.weight(targets)

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (C,) logits of the best constant prediction: log shares, or log odds, of the weighted targets."""
        factors = np.log(self.factors)
        return np.asarray(
            self.kind.constant(targets, task) + (factors if factors.ndim == 1 else factors[1] - factors[0])
        )

    def as_json(self, task: Task) -> dict[str, Any]:
        """Return label -> weight; if multilabel, the weight of examples with the label over that of those without."""
        found = self.factors if self.factors.ndim == 1 else self.factors[1] / self.factors[0]
        return {label: round(float(factor), 6) for label, factor in zip(task.labels, found, strict=True)}


def class_weights_of(task: Task, kind: Kind, targets: Numbers) -> ClassWeights | None:
    """Return the weights that the task's setting `class_weights` gives these training targets; None without it."""
    chosen = getattr(task.settings, "class_weights", None)
    if chosen is None:
        return None
    encoded = flat(targets)
    rows = len(encoded)
    if encoded.ndim == 1:  # one class per example or word
        counts = np.bincount(encoded.astype(np.int64), minlength=len(task.labels)).astype(np.float64)
        given = 1 / np.maximum(counts, 1) if chosen == BALANCED else np.array([chosen[label] for label in task.labels])
        return ClassWeights(kind, np.where(counts > 0, given * rows / (given * counts).sum(), 1.0))
    having = (encoded > 0).sum(axis=0).astype(np.float64)  # (C,)
    counts = np.stack([rows - having, having])
    if chosen == BALANCED:
        given = np.where(counts.min(axis=0) > 0, counts[0] / np.maximum(having, 1), 1.0)
    else:
        given = np.array([chosen[label] for label in task.labels])
    both = np.stack([np.ones_like(given), given])
    return ClassWeights(kind, both * rows / (both * counts).sum(axis=0))
