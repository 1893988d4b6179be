"""Top layers: trains the k highest blocks; the blocks below are frozen and computed once (partial freezing)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod


@methods.register("top_layers")
@dataclass(frozen=True)
class TopLayers(GradientMethod):
    """Fine-tuning of the top k of L blocks, from the cached hidden states that enter block L - k."""

    k: int = 2  # blocks trained
    learning_rate: float = 3e-4  # peak of the schedule

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    SAME_START: ClassVar[bool] = True
    LADDER: ClassVar[Entries] = ({"k": 1}, {}, {"k": 3})

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone has more than k blocks and they do not share weights."""
        if card is not None and card.shared_blocks:
            return f"the blocks of {card.id} share their weights, so the top ones can't be trained alone"
        if card is not None and card.blocks < 2:
            return f"{card.id} has no blocks below its top ones to freeze"
        if card is not None and not 0 < self.k < card.blocks:
            return f"k must be between 1 and {card.blocks - 1} for {card.id}, not {self.k}"
        return ""

    def attach(self, model: Model) -> None:
        """Train the top k blocks."""
        model.own_blocks(model.backbone.card.blocks - self.k)
