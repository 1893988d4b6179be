"""Thresholds that a kind chose on validation, as what is added to the logits of all that is fitted: 0 then serves."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.kind import ChoosesThresholds
from graftwork.core.method import THRESHOLDS_FACT, Fitted, Logits, ReadsStates, Setting
from graftwork.core.ragged import Numbers, added, repeated_as
from graftwork.core.task import Task
from graftwork.registry import kinds

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class WithThresholds:
    """A `Fitted` that reads no states, and whose logits have thresholds added."""

    fitted: Fitted
    thresholds: NDArray[np.float64]  # (C,)
    facts: Mapping[str, Any]  # of what was fitted, and the thresholds
    trained_parameters: int  # of what was fitted: thresholds are chosen, not trained

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C)."""
        return added(self.fitted.logits(examples), self.thresholds)

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Of what was fitted."""
        return self.fitted.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Of what was fitted."""
        return self.fitted.flops(examples)


def thresholds_of(setting: Setting, logits: Logits, targets: Numbers) -> NDArray[np.float64] | None:
    """What the kind chooses on these, the validation split; None where it has no thresholds."""
    kind = setting.kind
    return kind.shift(logits, targets, setting.task) if isinstance(kind, ChoosesThresholds) else None


def constant_answers(task: Task, learned: Numbers, chosen: Numbers, asked: Numbers) -> Numbers:
    """What is predicted of `asked`, encoded targets, by the best answer that never looks at the input: the majority
    class of the targets `learned`, or their mean, with thresholds that are chosen on those `chosen`."""
    kind = kinds.get(task.kind)
    answer = kind.constant(learned, task)  # (C,), or (places, C)
    thresholds = thresholds_of(Setting(task, kind, None), repeated_as(answer, chosen), chosen)
    logits = repeated_as(answer, asked)
    return kind.predictions(logits if thresholds is None else added(logits, thresholds), task)


def with_thresholds(fitted: Fitted, thresholds: Sequence[float] | NDArray[np.float64] | None) -> Fitted:
    """`fitted` with these added to its logits; as it is for None.

    Where the states of a frozen backbone are read they are added by whoever reads them, once for all that share a pass.
    """
    if thresholds is None:
        return fitted
    values = np.asarray(thresholds, dtype=np.float64)
    facts = {**fitted.facts, THRESHOLDS_FACT: values.tolist()}
    if not isinstance(fitted, ReadsStates):
        return WithThresholds(fitted, values, facts, fitted.trained_parameters)
    told = copy.copy(fitted)
    told.facts = facts
    return told
