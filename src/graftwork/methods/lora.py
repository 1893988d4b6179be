"""LoRA: trained low-rank updates of frozen linear layers (Hu et al. 2021, arXiv:2106.09685)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.low_rank import LowRank
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod


@methods.register("lora")
@dataclass(frozen=True)
class Lora(GradientMethod):
    """LoRA on the query and value maps of every block, or on the fused map if the backbone has only that."""

    rank: int = 8  # rank of the added map
    alpha: float = 16.0  # the map is scaled by alpha / rank
    learning_rate: float = 2e-3  # peak of the schedule

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone has query and value projections, or fused ones."""
        if self.rank <= 0:
            return f"rank must be above 0, not {self.rank}"
        fused = card is not None and "attention.query" in card.lacks
        return lacking(card, ("attention.qkv",) if fused else ("attention.query", "attention.value"))

    def attach(self, model: Model) -> None:
        """Plug in a low-rank update of each query and value projection, or of each fused projection."""
        fused = not model.backbone.sites("attention.query")
        for role in ("attention.qkv",) if fused else ("attention.query", "attention.value"):
            model.plug(role, lambda site: LowRank(site, self.rank, self.alpha))
