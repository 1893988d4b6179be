"""What a kind adds to the logits of everything that was fitted: thresholds that it chose on validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Inputs
from graftwork.core.example import Example
from graftwork.core.kind import ChoosesThresholds
from graftwork.core.method import Fitted, Logits, ReadsStates, Setting
from graftwork.core.ragged import Numbers, Ragged

if TYPE_CHECKING:
    from torch import Tensor

FACT = "shift"  # under this name it is stored with the module


@dataclass
class Shifted:
    """A `Fitted` whose logits have something added."""

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


@dataclass
class ShiftedReader:
    """The same where the states of a frozen backbone are read, so that it goes on sharing passes."""

    shifted: Shifted
    reader: ReadsStates
    facts: Mapping[str, Any]
    trained_parameters: int

    @property
    def depth(self) -> int | None:
        """Of what was fitted."""
        return self.reader.depth

    def read(self, inputs: Inputs, states: Sequence[Tensor], towers: int) -> Tensor:
        """(B, C) logits of one batch."""
        logits = self.reader.read(inputs, states, towers)
        return logits + logits.new_tensor(self.shifted.shift)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C)."""
        return self.shifted.logits(examples)

    def delta(self) -> dict[str, Tensor]:
        """Of what was fitted."""
        return self.shifted.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Of what was fitted."""
        return self.shifted.flops(examples)


def shift_of(setting: Setting, logits: Logits, targets: Numbers) -> NDArray[np.float64] | None:
    """What the kind chooses on these, the validation split; None where it has no thresholds."""
    kind = setting.kind
    return kind.shift(logits, targets, setting.task) if isinstance(kind, ChoosesThresholds) else None


def shifted(fitted: Fitted, shift: Sequence[float] | NDArray[np.float64] | None) -> Fitted:
    """`fitted` with this added to its logits; as it is for None."""
    if shift is None:
        return fitted
    values = np.asarray(shift, dtype=np.float64)
    facts = {**fitted.facts, FACT: values.tolist()}
    plain = Shifted(fitted, values, facts, fitted.trained_parameters)
    if isinstance(fitted, ReadsStates):
        return ShiftedReader(plain, fitted, facts, plain.trained_parameters)
    return plain


def added(logits: Logits, shift: NDArray[np.float64]) -> Logits:
    """(N, C) + (C,)."""
    assert not isinstance(logits, Ragged), "thresholds are for answers that are one row each"
    return logits + shift
