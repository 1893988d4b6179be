"""What a kind adds to the logits of everything that was fitted: thresholds that it chose on validation."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.kind import ChoosesThresholds
from graftwork.core.method import SHIFT, Fitted, Logits, ReadsStates, Setting
from graftwork.core.ragged import Numbers, added

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Shifted:
    """A `Fitted` that reads no states, and whose logits have something added."""

    fitted: Fitted
    shift: NDArray[np.float64]  # (C,)
    facts: Mapping[str, Any]  # of what was fitted, and the shift
    trained_parameters: int  # of what was fitted: thresholds are chosen, not trained

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C)."""
        return added(self.fitted.logits(examples), self.shift)

    def delta(self) -> dict[str, Tensor]:
        """Of what was fitted."""
        return self.fitted.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Of what was fitted."""
        return self.fitted.flops(examples)


def shift_of(setting: Setting, logits: Logits, targets: Numbers) -> NDArray[np.float64] | None:
    """What the kind chooses on these, the validation split; None where it has no thresholds."""
    kind = setting.kind
    return kind.shift(logits, targets, setting.task) if isinstance(kind, ChoosesThresholds) else None


def shifted(fitted: Fitted, shift: Sequence[float] | NDArray[np.float64] | None) -> Fitted:
    """`fitted` with this added to its logits; as it is for None.

    Where the states of a frozen backbone are read it is added by whoever reads them, once for all that share a pass.
    """
    if shift is None:
        return fitted
    values = np.asarray(shift, dtype=np.float64)
    facts = {**fitted.facts, SHIFT: values.tolist()}
    if not isinstance(fitted, ReadsStates):
        return Shifted(fitted, values, facts, fitted.trained_parameters)
    told = copy.copy(fitted)
    told.facts = facts
    return told
