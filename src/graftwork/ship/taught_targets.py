"""Targets and loss of distillation: for each row its label, if it has one, and the outputs of the teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import mse_loss

from graftwork.core.kind import Kind, LearnsFromLogits
from graftwork.core.ragged import Numbers, Ragged, flat
from graftwork.core.task import Task


@dataclass(frozen=True)
class TaughtLoss:
    """The distillation loss: divergence from the teacher and loss on the labels, weighted. Implements `TrainingLoss`.

    A row of targets, (1 + K + C + P,) float32, holds: 1 if it has a label, else 0; the K values of its encoded label;
    the teacher's C logits; and the P features that are the input of the teacher's head, P = 0 if they are not learnt.
    """

    kind: Kind
    labels: tuple[int, ...]  # shape of one encoded label: () or (K,)
    dtype: torch.dtype  # of encoded labels
    outputs: int  # C
    temperature: float
    share: float  # of the teacher in the loss of a row with a label, 0 … 1
    features: float  # factor of the loss on features

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of logits (B, C) and targets (B, 1 + K + C + P), the mean over B."""
        kind, (known, labels, teacher, _) = self.kind, self._parts(targets)
        assert isinstance(kind, LearnsFromLogits)
        taught = kind.teaching_loss(logits, teacher, self.temperature) * self.share
        if self.share == 1 or not known.any():
            return taught
        told = kind.loss(logits[known], labels[known]) * (known.sum() / len(known))
        return taught + told * (1 - self.share)

    def loss_of_features(self, pooled: Tensor, targets: Tensor) -> Tensor:
        """Compute `features` x the mean squared difference of features (B, P) from the teacher's; 0 if P is 0."""
        teacher = self._parts(targets)[-1]
        if not teacher.numel():
            return pooled.sum() * 0
        return mse_loss(pooled.float(), teacher) * self.features

    def weight(self, targets: Tensor) -> float:
        """Return B."""
        return len(targets)

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return the logits (C,) of the best constant prediction for the rows with a label."""
        known, labels, _, _ = self._parts(torch.from_numpy(flat(targets)))
        told = labels[known].numpy()
        counts = np.ones(len(told), dtype=np.int64)
        return self.kind.constant(Ragged(told, counts) if isinstance(targets, Ragged) else told, task)

    def _parts(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Split (B, 1 + K + C + P) into known (B,) bool, labels as the kind encodes them, logits and features."""
        width = self.labels[0] if self.labels else 1
        known, labels, logits, features = targets.split(
            [1, width, self.outputs, targets.shape[1] - 1 - width - self.outputs], dim=1
        )
        labels = labels.to(self.dtype)
        return known[:, 0] > 0, labels if self.labels else labels[:, 0], logits, features


def taught_targets(labelled: Numbers, teacher: Sequence[Numbers], features: Sequence[Numbers] = ()) -> Numbers:
    """Return the targets of `TaughtLoss`, (N, 1 + K + C + P): labelled examples first, then those without a label.

    `labelled` are the encoded labels of the former. `teacher` has the teacher's logits (N, C) of all these examples, in
    parts; `features` its features (N, P), likewise, or nothing.
    """
    labels = flat(labelled)
    known, labels = len(labels), labels.reshape(len(labels), -1)
    answers = np.concatenate(
        [np.concatenate([flat(one) for one in part]) for part in (teacher, features) if part], axis=1
    )
    rows = np.zeros((len(answers), 1 + labels.shape[1] + answers.shape[1]), dtype=np.float32)
    rows[:known, 0] = 1
    rows[:known, 1 : 1 + labels.shape[1]] = labels
    rows[:, 1 + labels.shape[1] :] = answers
    counts = [one.counts for one in teacher if isinstance(one, Ragged)]
    return Ragged(rows, np.concatenate(counts)) if counts else rows
