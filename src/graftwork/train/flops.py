"""Arithmetic counted operator by operator, on one batch per length and multiplied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from graftwork.core.method import Tally

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[T, float]:
    """Do `work` and count its matrix products: 2 FLOP per multiply-add, forward and backward, frozen or not.

    Elementwise work (norms, softmax, activations, the optimiser, look-ups) is not counted, as is the field's habit.
    """
    with FlopCounterMode(display=False) as counter:
        result = work()
    return result, float(counter.get_total_flops())


class StepCounter:
    """Counts the first batch of every length and multiplies by size: the rest of a run costs nothing to count."""

    def __init__(self, tally: Tally):
        self.tally = tally
        self._flops_per_sequence: dict[int, float] = {}  # by T

    def run(self, mask: Tensor, work: Callable[[], T]) -> T:
        """Do `work` on a batch whose real tokens `mask` (S, T) marks."""
        sequences, positions = mask.shape
        if positions in self._flops_per_sequence:
            result = work()
        else:
            result, flops = counted(work)
            self._flops_per_sequence[positions] = flops / sequences
        self.tally.add(self._flops_per_sequence[positions] * sequences, 1 - float(mask.float().mean()))
        return result
