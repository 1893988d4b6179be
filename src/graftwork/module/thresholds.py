"""Thresholds chosen on validation, as a shift of the logits, so that the threshold is 0."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.kind import ChoosesThresholds
from graftwork.core.method import THRESHOLDS_FACT, Fitted, Logits, ReadsBack, ReadsStates, Setting
from graftwork.core.ragged import Numbers, add_to_first_rows, repeated_as
from graftwork.core.task import Task
from graftwork.registry import kinds

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class WithThresholds:
    """A `Fitted` that reads no states, with thresholds added to its logits."""

    fitted: Fitted
    thresholds: NDArray[np.float64]  # (C,)
    facts: Mapping[str, Any]  # those of `fitted`, and the thresholds
    trained_parameters: int  # those of `fitted`: thresholds are chosen, not trained

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the shifted logits (N, C)."""
        return add_to_first_rows(self.fitted.logits(examples), self.thresholds)

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the delta of `fitted`."""
        return self.fitted.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Return the FLOP of `fitted`."""
        return self.fitted.flops(examples)


def thresholds_of(setting: Setting, logits: Logits, targets: Numbers) -> NDArray[np.float64] | None:
    """Return the thresholds that the kind chooses on the validation split; None if it has none."""
    kind = setting.kind
    return kind.shift(logits, targets, setting.task) if isinstance(kind, ChoosesThresholds) else None


def constant_answers(task: Task, learned: Numbers, chosen: Numbers, asked: Numbers) -> Numbers:
    """Return the best constant prediction for each of the encoded targets `asked`: the majority class or the mean of
    the targets `learned`, with thresholds chosen on the targets `chosen`."""
    kind = kinds.get(task.kind)
    answer = kind.constant(learned, task)  # (C,), or (places, C)
    thresholds = thresholds_of(Setting(task, kind, None), repeated_as(answer, chosen), chosen)
    logits = repeated_as(answer, asked)
    return kind.predictions(logits if thresholds is None else add_to_first_rows(logits, thresholds), task)


def with_thresholds(fitted: Fitted, thresholds: Sequence[float] | NDArray[np.float64] | None) -> Fitted:
    """Return `fitted` with thresholds added to its logits; unchanged for None.

    For a method that reads the states of a frozen backbone they are recorded in its facts, and added by its caller.
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


def reading_back(fitted: Fitted) -> ReadsBack | None:
    """Return the `ReadsBack` that `fitted` is or wraps with thresholds; None if there is none."""
    below = fitted.fitted if isinstance(fitted, WithThresholds) else fitted
    return below if isinstance(below, ReadsBack) else None
