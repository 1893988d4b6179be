"""ULMFiT fine-tuning: gradual unfreezing, layer-wise learning-rate decay and a slanted triangular schedule
(Howard & Ruder 2018, arXiv:1801.06146)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import LATER
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod
from graftwork.train.optimiser import warm_up_then_linear

SCHEDULES, UNFREEZINGS = ("slanted", "linear", "constant"), ("gradual", "at_once")


def slanted_triangular(step: int, steps: int, cut_frac: float, ratio: float) -> float:
    """Return the share of the peak rate at `step` (0-based) of `steps`: from 1 / ratio to 1 over the first `cut_frac`
    of them, then back.

    If `cut_frac` x `steps` is an integer, this is the paper's formula; otherwise the paper's falls below 1 / ratio, and
    even below 0, in the last steps, and this one does not.
    """
    cut = max(1, math.floor(steps * cut_frac))
    height = step / cut if step < cut else 1 - (step - cut) / max(1, steps - cut)
    return (1 + height * (ratio - 1)) / ratio


def unfreezing(blocks: int, epochs: int) -> list[int]:
    """Return the lowest trained block of each epoch: all blocks in the last third, fewer before.

    At least one more block is unfrozen per epoch, from the top; several if there are too few epochs for that.
    """
    early = epochs - math.ceil(epochs / 3)
    trained = (max(epoch, epoch * blocks // (early + 1)) for epoch in range(1, epochs + 1))
    return [max(0, blocks - count) for count in trained]


@methods.register("ulmfit")
@dataclass(frozen=True)
class Ulmfit(GradientMethod):
    """Full fine-tuning from the top down; early epochs train on cached hidden states that enter the unfrozen blocks."""

    learning_rate: float = 5e-4  # peak of the schedule, for the head and the highest block
    divisor: float = 2.6  # learning rate of a block divided by that of the block below
    cut_frac: float = 0.1  # share of the steps in which the rate rises
    ratio: float = 32.0  # highest rate divided by the lowest
    schedule: str = field(default="slanted", metadata=LATER)  # "linear": warm-up and decay to 0; "constant"
    unfreezing: str = field(default="gradual", metadata=LATER)  # "at_once": everything trains in every epoch

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone has blocks that do not share weights."""
        if card is not None and card.shared_blocks:
            return f"the blocks of {card.id} share their weights, so they can't be unfrozen one by one"
        if card is not None and not card.blocks:
            return f"{card.id} has no blocks to unfreeze one by one"
        if not self.divisor >= 1:
            return f"divisor must be at least 1, not {self.divisor}"
        if not 0 < self.cut_frac < 1:
            return f"cut_frac must be between 0 and 1, not {self.cut_frac}"
        for name, known in (("schedule", SCHEDULES), ("unfreezing", UNFREEZINGS)):
            if getattr(self, name) not in known:
                return f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}"
        return "" if self.ratio >= 1 else f"ratio must be at least 1, not {self.ratio}"

    def attach(self, model: Model) -> None:
        """Train everything, including embeddings; `lowest_blocks` determines when each block trains."""
        model.own_blocks(0, self.decay)

    @property
    def decay(self) -> float:
        """The learning rate of a block as a share of that of the block above."""
        return 1 / self.divisor

    @property
    def scheduled(self) -> Mapping[str, Any]:
        """The settings of the schedule, for the receipt."""
        settings: dict[str, Mapping[str, Any]] = {
            "slanted": {"schedule": "slanted triangular", "cut_frac": self.cut_frac, "ratio": self.ratio},
            "linear": {"schedule": "linear", "warm_up": self.cut_frac},
        }
        return settings.get(self.schedule, {"schedule": self.schedule})

    def share(self, step: int, steps: int) -> float:
        """Return the share of the peak rate at `step` (0-based) of `steps`."""
        if self.schedule == "linear":
            return warm_up_then_linear(step, steps, self.cut_frac)
        return 1.0 if self.schedule == "constant" else slanted_triangular(step, steps, self.cut_frac, self.ratio)

    def lowest_blocks(self, blocks: int, epochs: int) -> list[int]:
        """Return the lowest trained block of each epoch."""
        return unfreezing(blocks, epochs) if self.unfreezing == "gradual" else [0] * epochs
