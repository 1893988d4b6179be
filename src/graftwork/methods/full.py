"""Full fine-tuning: trains every weight of a private copy of the backbone (Howard & Ruder 2018, arXiv:1801.06146;
Devlin et al. 2019, arXiv:1810.04805)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import AS_IT_COMES, Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod

EMBEDDINGS = ("touched", "frozen")


@methods.register("full")
@dataclass(frozen=True)
class Full(GradientMethod):
    """Full fine-tuning with layer-wise learning-rate decay; the module is as large as the backbone."""

    learning_rate: float = 2e-4  # peak of the schedule, for the head and the highest block
    decay: float = 0.8  # learning rate of a block as a share of that of the block above
    embeddings: str = "touched"  # token embeddings: rows in a batch are trained; "frozen": none trained, none stored

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    SAME_START: ClassVar[bool] = True
    LADDER: ClassVar[Entries] = AS_IT_COMES
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason for invalid settings only: every backbone fits."""
        if not 0 < self.decay <= 1:
            return f"decay must be above 0 and at most 1, not {self.decay:g}"
        known = self.embeddings in EMBEDDINGS
        return "" if known else f"embeddings must be one of {', '.join(EMBEDDINGS)}, not {self.embeddings!r}"

    def attach(self, model: Model) -> None:
        """Train everything, including the token embeddings unless they are frozen."""
        model.own_blocks(0, self.decay)
        if self.embeddings == "frozen":
            model.freeze_sites("embedding")
