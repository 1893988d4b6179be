"""Majority: the best constant answer, a floor for every other score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Baseline, Logits, LooksUp, Setting, Workbench
from graftwork.core.ragged import repeated
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.targets.written_texts import written_from_lists

if TYPE_CHECKING:
    from torch import Tensor

TEXT = "text"  # key in the facts: the most frequent text, as its kind stores it


@dataclass
class Constant(LooksUp):
    """A fitted method with the same logits (C,) for every example, or the same text (1,), which is in the facts."""

    answer: NDArray[Any]
    facts: Mapping[str, Any]

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the constant logits (N, C), or (W, C)."""
        return repeated(self.answer, examples)

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return the constant logits."""
        return {} if TEXT in self.facts else {"logits": self.answer}


@methods.register("majority")
@dataclass(frozen=True)
class Majority(Baseline):
    """The most frequent class of the training split, its frequent labels, its mean, or its most frequent text."""

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return an empty string: every task fits."""
        return ""

    def fit(self, bench: Workbench) -> Constant:
        """Compute the best constant answer on the training targets."""
        answer = bench.setting.kind.constant(bench.train.targets, bench.setting.task)  # (C,)
        return Constant(answer, {TEXT: answer.tolist()} if answer.dtype.names else {})

    def restore(
        self, setting: Setting, delta: Mapping[str, Tensor | NDArray[Any]], facts: Mapping[str, Any]
    ) -> Constant:
        """Rebuild the method from its stored constant."""
        answer = written_from_lists(facts[TEXT]) if TEXT in facts else np.asarray(delta["logits"])
        return Constant(answer, facts)
