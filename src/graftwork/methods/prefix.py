"""Prefix-tuning: learned keys and values before those of every attention layer (Li & Liang 2021, arXiv:2101.00190)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.method import Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.sites import site_size
from graftwork.nn.virtual_tokens import VirtualTokens
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod

ROLE = "attention"


@methods.register("prefix")
@dataclass(frozen=True)
class PrefixTuning(GradientMethod):
    """Learned keys and values before those of the text, in every attention: that of a decoder to its input too."""

    length: int = 10  # virtual tokens
    learning_rate: float = 3e-3  # peak of the schedule

    IDENTITY_AT_START: ClassVar[bool] = False
    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    BOARD: ClassVar[Entries] = ()  # on a board only if requested: no earlier board has it, so its prior is unknown

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the attention of the backbone's blocks can take a prefix."""
        if self.length <= 0:
            return f"length must be above 0, not {self.length}"
        lacks = card is not None and ROLE in card.lacks
        return f"the blocks of {card.id} have no attention that takes a prefix" if card is not None and lacks else ""

    def attach(self, model: Model) -> None:
        """Put a prefix before the keys and values of every block."""
        widths = iter(_key_widths(model.backbone))
        model.plug(ROLE, lambda site: VirtualTokens(self.length, next(widths)), at="attention")


def _key_widths(backbone: Backbone) -> list[int]:
    """Return the key width H d of every block; H may be below the number of query heads.

    A fused projection outputs queries, as wide as the output projection's input, and keys and values of equal width.
    """
    keys, fused = backbone.sites("attention.key"), backbone.sites("attention.qkv")
    outputs = backbone.sites("attention.output")
    return [site_size(site)[1] for site in keys.values()] or [
        (site_size(site)[1] - site_size(output)[0]) // 2
        for site, output in zip(fused.values(), outputs.values(), strict=True)
    ]
