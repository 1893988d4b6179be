"""Targets that a student learns from: labels where there are any, and beside each the logits of its teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.kind import Kind, LearnsFromLogits
from graftwork.core.ragged import Numbers, Ragged, flat
from graftwork.core.task import Task


@dataclass(frozen=True)
class TaughtLoss:
    """A share of the divergence from the teacher, the rest from the labels. Implements `TrainingLoss`.

    A row of targets, (1 + K + C,) float32, is 1 where it has a label, the K numbers of the label, and the teacher's
    C logits.
    """

    kind: Kind
    labels: tuple[int, ...]  # shape of one encoded label: () or (K,)
    dtype: torch.dtype  # of encoded labels
    temperature: float
    share: float  # of the teacher in the loss of a row with a label, 0 … 1

    @classmethod
    def of(cls, kind: Kind, targets: Numbers, temperature: float, share: float) -> TaughtLoss:
        """Return the loss for labels encoded as `targets` are."""
        encoded = torch.from_numpy(flat(targets)[:0])
        return cls(kind, tuple(encoded.shape[1:]), encoded.dtype, temperature, share)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of logits (B, C) and targets (B, 1 + K + C), the mean over B."""
        kind, (known, labels, teacher) = self.kind, self._parts(targets)
        assert isinstance(kind, LearnsFromLogits)
        taught = kind.teaching_loss(logits, teacher, self.temperature) * self.share
        if self.share == 1 or not known.any():
            return taught
        told = kind.loss(logits[known], labels[known]) * (known.sum() / len(known))
        return taught + told * (1 - self.share)

    def weight(self, targets: Tensor) -> float:
        """Return B."""
        return len(targets)

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (C,) logits of the best constant answer to the rows with a label."""
        known, labels, _ = self._parts(torch.from_numpy(flat(targets)))
        told = labels[known].numpy()
        counts = np.ones(len(told), dtype=np.int64)
        return self.kind.constant(Ragged(told, counts) if isinstance(targets, Ragged) else told, task)

    def _parts(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split targets (B, 1 + K + C) into known (B,) bool, labels as the kind encodes them, and logits (B, C)."""
        width = self.labels[0] if self.labels else 1
        labels = targets[:, 1 : 1 + width].to(self.dtype)
        return targets[:, 0] > 0, labels if self.labels else labels[:, 0], targets[:, 1 + width :]


def taught_targets(labelled: Numbers, teacher: Sequence[Numbers]) -> Numbers:
    """Join encoded labels to the teacher's logits of the same examples, and behind them to those of further ones.

    `teacher` has the logits of the labelled examples, then of others, which get no label.
    """
    labels, logits = flat(labelled), np.concatenate([flat(one) for one in teacher])
    labels = labels.reshape(len(labels), -1)
    rows = np.zeros((len(logits), 1 + labels.shape[1] + logits.shape[1]), dtype=np.float32)
    rows[: len(labels), 0] = 1
    rows[: len(labels), 1 : 1 + labels.shape[1]] = labels
    rows[:, 1 + labels.shape[1] :] = logits
    counts = [one.counts for one in teacher if isinstance(one, Ragged)]
    return Ragged(rows, np.concatenate(counts)) if counts else rows
