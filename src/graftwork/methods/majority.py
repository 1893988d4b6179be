"""Majority: the best constant answer, a floor for every other score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.ragged import repeated
from graftwork.core.task import Task
from graftwork.registry import methods

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Constant(LooksUp):
    """A fitted method with the same logits (C,) for every example."""

    answer: NDArray[np.float64]
    facts: Mapping[str, Any]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the constant logits (N, C), or (W, C)."""
        return repeated(self.answer, examples)

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return the constant logits."""
        return {"logits": self.answer}


@methods.register("majority")
@dataclass(frozen=True)
class Majority(Baseline):
    """The most frequent class of the training split, its frequent labels, or its mean."""

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return an empty string: every task fits."""
        return ""

    def fit(self, bench: Workbench) -> Constant:
        """Compute the best constant answer on the training targets."""
        answer = bench.setting.kind.constant(bench.train.targets, bench.setting.task)  # (C,)
        return Constant(answer, {})

    def restore(
        self, setting: Setting, delta: Mapping[str, Tensor | NDArray[Any]], facts: Mapping[str, Any]
    ) -> Constant:
        """Rebuild the method from its stored constant."""
        return Constant(np.asarray(delta["logits"]), facts)
