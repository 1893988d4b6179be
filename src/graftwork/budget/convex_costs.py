"""Forecast of the time of convex fits on frozen features, extrapolated from fits on a few rows.

The number of loss evaluations hardly depends on the number of rows; the time of each evaluation does.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import linear

from graftwork.budget.batch_lengths import Lengths
from graftwork.budget.pilot import Timer, median_seconds
from graftwork.core.method import Setting
from graftwork.core.model import joined_width
from graftwork.core.task import Split
from graftwork.train.linear_fit import kept_targets

EVALUATIONS_GROW = 0.09  # relative increase of loss evaluations when the number of rows grows e-fold (docs/log.md)


class ConvexCosts:
    """The cost of convex fits on one task's training rows."""

    def __init__(self, lengths: Lengths, setting: Setting, train: Split, clock: Timer):
        self.lengths, self.setting, self.train, self.clock = lengths, setting, train, clock
        self._evaluations: dict[int, float] = {}  # rows -> seconds of one evaluation of a convex fit

    def seconds(self, taken: float, evaluations: int, rows: int) -> float:
        """Return the seconds of fits on all rows; on `rows` rows they took `taken` seconds and `evaluations` losses."""
        total, tried = (self.features(count) for count in (len(self.train.examples), rows))
        more = self._evaluation_seconds(total) - self._evaluation_seconds(tried) if evaluations else 0.0
        grown = 1 + EVALUATIONS_GROW * math.log(max(1.0, total / tried))
        return grown * (taken + evaluations * max(0.0, more))

    def features(self, rows: int) -> int:
        """Return the number of feature rows of a convex fit on `rows` examples: one per example, word or choice."""
        encoded = self.lengths.encoded["train"]
        if encoded.answers is None:
            return rows
        read = int(encoded.read.sum()) / encoded.towers / len(encoded)
        return max(1, min(encoded.kept // encoded.towers, round(rows * read)))

    def _evaluation_seconds(self, rows: int) -> float:
        """Return the seconds of one evaluation (forward and backward) of a convex fit's loss on `rows` feature rows."""
        if rows not in self._evaluations:
            encoded, kind = self.lengths.encoded["train"], self.setting.kind
            read = self.lengths.backbone.card.read_widths(kind.per_word)[-1]
            width = joined_width(read, encoded.towers)
            features = torch.randn(rows, width, generator=torch.Generator().manual_seed(0))  # (N, P)
            weight = torch.zeros(kind.outputs(self.setting.task), width, requires_grad=True)  # (C, P)
            targets = kept_targets(self.train, encoded)[:rows]

            def work() -> None:
                kind.loss(linear(features, weight), targets).backward()

            self._evaluations[rows] = median_seconds(self.clock, work)
        return self._evaluations[rows]
