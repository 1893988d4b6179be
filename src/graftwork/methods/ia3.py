"""IA3: learned scaling of keys, values and feed-forward activations (Liu et al. 2022, arXiv:2205.05638)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.method import Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.gain import Gain
from graftwork.nn.sites import site_size
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod


@methods.register("ia3")
@dataclass(frozen=True)
class IA3(GradientMethod):
    """Gains on the keys, the values and the inner feed-forward states of every block."""

    learning_rate: float = 1e-2  # peak of the schedule

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    BOARD: ClassVar[Entries] = ()  # on a board only if requested: no earlier board has it, so its prior is unknown

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone has attention and feed-forward projections."""
        return lacking(card, (*_attention(card is not None and "attention.key" in card.lacks), "mlp.down"))

    def attach(self, model: Model) -> None:
        """Plug in the gains: after the key and value, or fused, projections, and before the second feed-forward one."""
        for role in _attention(not model.backbone.sites("attention.key")):
            model.plug(role, lambda site: Gain(site_size(site)[1]))
        model.plug("mlp.down", lambda site: Gain(site_size(site)[0]), at="input")


def _attention(fused: bool) -> tuple[str, ...]:
    """Return the roles of the key and value projections; if `fused`, of the joint one with the queries."""
    return ("attention.qkv",) if fused else ("attention.key", "attention.value")
