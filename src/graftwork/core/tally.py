"""The count of floating-point operations of a fit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Tally:
    """FLOP counter, 2 FLOP per multiply-add."""

    flops: float = 0.0
    padding_flops: float = 0.0
    grade: str = "counter"  # "model" once any part was computed from a formula

    def add(self, flops: float, padding_share: float = 0.0) -> None:
        """Add work of which `padding_share` (0 … 1) was on padding."""
        self.flops += flops
        self.padding_flops += flops * padding_share

    def add_model(self, flops: float, padding_share: float = 0.0) -> None:
        """Add work computed from a formula rather than counted from the operators that ran."""
        self.add(flops, padding_share)
        self.grade = "model"

    def include(self, other: Tally) -> None:
        """Add another tally."""
        self.flops += other.flops
        self.padding_flops += other.padding_flops
        if other.grade == "model":
            self.grade = "model"
